"""Scenarios of MCP calls that `codex mcp-server` answered and its replacement must answer, as data."""

from __future__ import annotations

from typing import Any

from laneway.testing.mcp_traces import Reply, Scenario, Send, Step, Until

READ_ONLY = {"sandbox": "read-only", "approval-policy": "on-request"}
WRITABLE = {"sandbox": "workspace-write", "approval-policy": "on-request"}
NOBODY = "01a00000-0000-7000-8000-000000000000"
"""A well-formed thread id that does not exist."""


def request(request_id: int | str, method: str, params: Any = None) -> Send:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return Send(message if params is None else {**message, "params": params})


def notification(method: str, params: Any = None) -> Send:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return Send(message if params is None else {**message, "params": params})


def call(request_id: int, tool: str, arguments: Any = None) -> Send:
    params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
    return request(request_id, "tools/call", params)


def exchange(request_id: int | str, send: Send) -> tuple[Step, ...]:
    """A request and the wait for its answer."""
    return (send, Until(answer=request_id))


def codex(request_id: int, prompt: str, **more: Any) -> tuple[Step, ...]:
    return exchange(request_id, call(request_id, "codex", {"prompt": prompt, **_kebab(more)}))


def reply(request_id: int, prompt: str, **more: Any) -> tuple[Step, ...]:
    return exchange(request_id, call(request_id, "codex-reply", {"prompt": prompt, **more}))


def _kebab(names: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in names.items()}


def hello(version: str = "2025-06-18") -> tuple[Step, ...]:
    params = {
        "protocolVersion": version,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "golden", "version": "1"},
    }
    return (*exchange(0, request(0, "initialize", params)), notification("notifications/initialized"))


def ping(request_id: int | str = "ping") -> tuple[Step, ...]:
    """When this is answered, all earlier requests that get an answer have it."""
    return exchange(request_id, request(request_id, "ping"))


def scenario(name: str, *steps: tuple[Step, ...] | Step, **more: Any) -> Scenario:
    flat: list[Step] = [*hello()]
    for part in steps:
        flat += part if isinstance(part, tuple) else (part,)
    return Scenario(name, tuple(flat), **more)


def decided(request_id: int, prompt: str, answer: Any, **arguments: Any) -> tuple[Step, ...]:
    """A turn that asks for one approval, and its answer."""
    send, done = codex(request_id, prompt, **arguments)
    return (send, Until(request="elicitation/create"), Reply(answer), done)


def aborted(prompt: str, **arguments: Any) -> tuple[Step, ...]:
    """A turn that ends with its approval: the removed server left such a call without an answer."""
    send, _ = codex(1, prompt, **arguments)
    abort = (Until(request="elicitation/create"), Reply({"decision": "abort"}), Until(event="turn_aborted"))
    return (send, *abort, Until(answer=1, repaired=True), *ping())


def unanswered(*sends: Send) -> tuple[Step, ...]:
    """Requests that the removed server did not answer: a ping after them proves it."""
    waits = tuple(Until(answer=send.message["id"], repaired=True) for send in sends)
    return (*sends, *waits, *ping())


def refused(tool: str, *arguments: Any) -> tuple[Step, ...]:
    """Calls, numbered from one, that are refused."""
    calls = [
        exchange(number, call(number, tool, tool_arguments))
        for number, tool_arguments in enumerate(arguments, 1)
    ]
    return tuple(step for steps in calls for step in steps)


OUTSIDE = "%run! mkdir -p outside\n%say Asked."
"""Prints nothing: Codex may lose the first or last output of a command. Those that print sleep around it."""
EDIT = "%patch hello.txt Hello.\n%say Asked."
HI = {"prompt": "%say Hi."}

SCENARIOS = (
    scenario("tools", exchange(1, request(1, "tools/list"))),
    Scenario("version-unknown", hello("1999-01-01")),
    Scenario("version-newest", hello("2025-11-25")),
    scenario(
        "protocol",
        ping(),
        notification("notifications/nonsense", {"a": 1}),
        exchange(1, request(1, "nonsense/method", {})),
        exchange(2, request(2, "tools/call", {"arguments": {}})),
        exchange(3, request(3, "tools/call", {"name": "codex", "arguments": ["%say Hi."]})),
        exchange(4, call(4, "nonsense", {})),
    ),
    scenario("unanswered", unanswered(request(1, "resources/list"), request(2, "prompts/list"))),
    scenario(
        "words",
        codex(1, "%say Two words, and some more."),
        codex(2, "%think Let me see.\n%say I see."),
        codex(3, "%plan Look; Leap\n%say Planned."),
        codex(4, ""),
        # Last, because a writable sandbox makes today's Codex trust the folder from then on.
        codex(5, "%say First.\n%run true\n%say Second.", **WRITABLE),
    ),
    scenario(
        "commands",
        codex(1, "%run sleep 0.2; printf 'one\\ntwo\\n'; sleep 0.2\n%say Printed.", **WRITABLE),
        codex(2, "%run sleep 0.2; echo no >&2; sleep 0.2; exit 3\n%say That failed.", **WRITABLE),
        codex(3, "%run sleep 0.2; pwd; sleep 0.2\n%say Hi.", cwd="$work", **WRITABLE),
        codex(4, "%run sleep 0.2; pwd; sleep 0.2\n%say Hi.", cwd=".", **WRITABLE),
        codex(5, "%say Hi.", cwd="$work/nowhere", **WRITABLE),
        codex(
            6,
            "%run sleep 0.2; pwd; sleep 0.2\n%say Hi.",
            sandbox="danger-full-access",
            approval_policy="never",
        ),
    ),
    scenario(
        "patches",
        codex(1, "%patch hello.txt Hello,\\nworld.\n%say Added.", **WRITABLE),
        codex(2, "%edit here.txt world. => reader.\n%say Edited.", **WRITABLE),
        files={"here.txt": "Hello,\nworld.\n"},
    ),
    scenario(
        "approvals",
        decided(1, OUTSIDE, {"decision": "approved"}, **WRITABLE),
        decided(2, OUTSIDE, {"decision": "approved_for_session"}, **WRITABLE),
        decided(3, EDIT, {"decision": "approved"}, **READ_ONLY),
    ),
    scenario(
        "denials",
        decided(1, OUTSIDE, {"decision": "denied"}, **WRITABLE),
        decided(2, OUTSIDE, {"decision": {"denied": {"rejection": "Not today."}}}, **WRITABLE),
        decided(3, OUTSIDE, {"action": "decline"}, **WRITABLE),
        decided(4, OUTSIDE, {"what": "ever"}, **WRITABLE),
        decided(5, EDIT, {"decision": "denied"}, **READ_ONLY),
    ),
    scenario("accept", decided(1, OUTSIDE, {"action": "accept", "content": {}}, **WRITABLE)),
    scenario("command-aborted", aborted(OUTSIDE, **WRITABLE)),
    scenario("patch-aborted", aborted(EDIT, **READ_ONLY)),
    scenario(
        "reply",
        codex(1, "%say One."),
        reply(2, "%say Two.", threadId="$thread-1"),
        reply(3, "%say Three.", conversationId="$thread-1"),
        reply(4, "%say Four.", threadId="$thread-1", colour="red"),
    ),
    scenario(
        "reply-refused",
        refused(
            "codex-reply",
            None,
            {},
            {"threadId": NOBODY},
            {"prompt": 5, "threadId": NOBODY},
            {"prompt": "%say Hi."},
            {"prompt": "%say Hi.", "threadId": None},
            {"prompt": "%say Hi.", "threadId": NOBODY},
            {"prompt": "%say Hi.", "threadId": NOBODY.upper()},
            {"prompt": "%say Hi.", "threadId": "not-a-uuid"},
            {"prompt": "%say Hi.", "threadId": "abc"},
            {"prompt": "%say Hi.", "threadId": NOBODY[:-1]},
            {"prompt": "%say Hi.", "threadId": "1-2-3-4"},
        ),
    ),
    scenario(
        "refused",
        refused(
            "codex",
            None,
            {},
            {"prompt": None},
            {"prompt": 5},
            {"prompt": True},
            {"prompt": []},
            {"prompt": {}},
            {**HI, "config": "text"},
            {**HI, "config": 5},
            {**HI, "model": 5},
            {**HI, "sandbox": 5},
            {**HI, "sandbox": "none"},
            {**HI, "approval-policy": "always"},
            {**HI, "approval-policy": {}},
            {**HI, "colour": "red"},
            {"colour": "red", "prompt": 5},
            {"prompt": 5, "colour": "red"},
        ),
    ),
    scenario("config-refused", codex(1, "%say Hi.", config={"model_reasoning_effort": 5})),
    scenario(
        "parameters",
        codex(1, "%say Hi.", developer_instructions="Be brief."),
        codex(2, "%say Hi.", base_instructions="You are a test."),
        codex(3, "%say Hi.", compact_prompt="Shorten."),
        codex(4, "%say Hi.", model="gpt-5.4"),
        codex(5, "%say Hi.", config={"model": "gpt-5.4", "model_reasoning_effort": "high"}),
    ),
    scenario("failure", codex(1, "%fail 500 The model is out.")),
    scenario(
        "cancelled",
        call(1, "codex", {"prompt": "%stream 40 words over 800 seconds"}),
        Until(event="agent_message_content_delta"),
        notification("notifications/cancelled", {"requestId": 1, "reason": "enough"}),
        Until(event="turn_aborted"),
        ping(),
    ),
    scenario(
        "parallel",
        call(1, "codex", {"prompt": "%say One."}),
        call(2, "codex", {"prompt": "%say Two."}),
        Until(answer=1),
        Until(answer=2),
    ),
    scenario(
        "legacy-approval",
        codex(1, "%say Hi.", approval_policy="untrusted"),
        codex(2, "%say Hi.", approval_policy="on-failure"),
    ),
    scenario("legacy-profile", codex(1, "%say Hi.", profile="work")),
    scenario("legacy-include-plan-tool", codex(1, "%say Hi.", include_plan_tool=True)),
)
"""Approvals are answered in the format of the removed server; `accept` is answered in MCP's."""
