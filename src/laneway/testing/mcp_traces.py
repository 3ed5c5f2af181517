"""Runs a script of calls against any MCP server on stdio and records a normalised, comparable trace.

`converse` drives a command line through a scenario of `laneway.testing.mcp_scenarios` and waits for
messages, never for the clock. `normalise` replaces values that differ from run to run by fixed names, and
groups messages by call: calls are independent, and the order of messages of two calls is chance.
`laneway.testing.mcp_compare` compares traces.

Used by `scripts/record_mcp_traces.py` on the removed `codex mcp-server`, and by the golden
test on `laneway mcp-server`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from laneway.rehearsal.home import throwaway_home, work_beside
from laneway.rehearsal.server import ModelServer
from laneway.wire.child import Child
from laneway.wire.frames import LineDecoder

DEADLINE_S = 60.0
"""For one scenario; each takes a second or two."""
OWN_END_S = 5.0
"""For a server to end after its standard input has ended."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
"""No user profile and no shims, so that Codex runs the same programs everywhere."""


# ── the script ─────────────────────────────────────────────────────────────


class Send(msgspec.Struct, frozen=True):
    """A message of the client. In a text, `$thread-1` stands for the first thread, `$work` for the folder."""

    message: dict[str, Any]


class Until(msgspec.Struct, frozen=True):
    """Wait for the answer to a request, for an event of a type, or for a request of the server's."""

    answer: int | str | None = None
    event: str | None = None
    request: str | None = None
    repaired: bool = False
    """The removed server never sends this: wait only for its replacement's."""


class Reply(msgspec.Struct, frozen=True):
    """Answer the server's oldest open request."""

    result: Any


Step: TypeAlias = Send | Until | Reply


class Scenario(msgspec.Struct, frozen=True):
    name: str
    steps: tuple[Step, ...]
    files: dict[str, str] = {}
    """Files in the folder that Codex works in."""


class TraceLine(msgspec.Struct, frozen=True):
    """One message and its sender. `call` is the request that it belongs to."""

    who: str
    call: str
    message: dict[str, Any]


class Trace(msgspec.Struct, frozen=True):
    lines: tuple[TraceLine, ...]
    end: str
    """How the server ended when its standard input was closed: `exit code 0`, or a signal."""


# ── the client ─────────────────────────────────────────────────────────────


class NotReceived(Exception):
    """The server did not send the message that the script waits for."""

    def __init__(self, step: Step, lines: Sequence[TraceLine], stderr: str) -> None:
        last_lines = "\n".join(msgspec.json.encode(line.message).decode()[:300] for line in lines[-5:])
        super().__init__(
            f"still waiting for {step}; the last that was heard:\n{last_lines}\n{stderr[-2000:]}"
        )


class TraceClient:
    """One server, and all messages in both directions, in order."""

    def __init__(self, work: str, *, repaired: bool) -> None:
        self._repaired = repaired
        self.lines: list[TraceLine] = []
        self._places = {"$work": work}
        self._decoder = LineDecoder()
        self._child: Child | None = None
        self._open: list[tuple[Any, str, str]] = []
        self._received = asyncio.Event()
        self._is_over = False
        self._threads: list[str] = []

    async def run(
        self, argv: Sequence[str], scenario: Scenario, environment: Mapping[str, str], cwd: Path
    ) -> str:
        self._child = await Child.spawn(
            argv, on_stdout=self._feed, on_end=self._on_end, env=environment, cwd=cwd
        )
        own_end_s = OWN_END_S
        try:
            for step in scenario.steps:
                await self._take(step)
        except BaseException:
            own_end_s = 0.0
            raise
        finally:
            ended = await self._child.stop(own_end_s)
        return str(ended)

    async def _take(self, step: Step) -> None:
        match step:
            case Send(message):
                self._send(self._filled(message))
            case Reply(result):
                request_id, call, _ = self._open.pop(0)
                self._send({"jsonrpc": "2.0", "id": request_id, "result": result}, call)
            case Until() if self._repaired or not step.repaired:
                try:
                    async with asyncio.timeout(DEADLINE_S):
                        await self._wait(step)
                except TimeoutError:
                    raise self._not_received(step) from None
            case Until():
                pass

    async def _wait(self, until: Until) -> None:
        while not self._has(until):
            if self._is_over:
                raise self._not_received(until)
            self._received.clear()
            await self._received.wait()

    def _has(self, until: Until) -> bool:
        if until.request is not None:
            return any(method == until.request for _, _, method in self._open)
        return any(line.who == "server" and _meets(line.message, until) for line in self.lines)

    def _send(self, message: dict[str, Any], call: str | None = None) -> None:
        self.lines.append(TraceLine("client", _call_of(message) if call is None else call, message))
        if self._child is not None:
            self._child.write(msgspec.json.encode(message) + b"\n")

    def _filled(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: self._filled(inner) for key, inner in value.items()}
            case str():
                places = {f"$thread-{n}": thread for n, thread in enumerate(self._threads, 1)} | self._places
                for name, place in places.items():
                    value = value.replace(name, place)
                return value
            case _:
                return value

    def _feed(self, data: bytes) -> None:
        for raw in self._decoder.feed(data):
            message = msgspec.json.decode(raw)
            line = TraceLine("server", _call_of(message), message)
            self.lines.append(line)
            if "method" in message and "id" in message:
                self._open.append((message["id"], line.call, str(message["method"])))
            thread = message.get("params", {}).get("_meta", {}).get("threadId")
            if thread is not None and thread not in self._threads:
                self._threads.append(thread)
        self._received.set()

    def _not_received(self, step: Step) -> NotReceived:
        return NotReceived(step, self.lines, self._child.stderr_tail if self._child is not None else "")

    def _on_end(self, ended: Any) -> None:
        self._is_over = True
        self._received.set()


def _meets(message: dict[str, Any], until: Until) -> bool:
    if until.answer is not None:
        return "method" not in message and message.get("id") == until.answer
    return event_type(message) == until.event


def event_type(message: dict[str, Any]) -> str | None:
    """The type of a `codex/event`; none for every other message."""
    if message.get("method") != "codex/event":
        return None
    return str(message["params"]["msg"]["type"])


def _call_of(message: dict[str, Any]) -> str:
    """The request that a message belongs to, as text; empty for a message of its own."""
    params = message.get("params") or {}
    if "method" not in message:
        return str(message.get("id"))
    if message["method"] == "codex/event":
        return str(params.get("_meta", {}).get("requestId", ""))
    if message["method"] == "elicitation/create":
        return str(params.get("codex_mcp_tool_call_id", ""))
    if message["method"] == "notifications/cancelled":
        return str(params.get("requestId", ""))
    return str(message.get("id", ""))


async def converse(
    argv: Sequence[str], scenario: Scenario, *, repaired: bool, environment: Mapping[str, str] = ENVIRONMENT
) -> Trace:
    """Start the server with a temporary home and the scripted model, play the scenario, normalise."""
    async with ModelServer() as model:
        with throwaway_home(model.base_url) as home:
            work = work_beside(home)
            # A server that is not ours does not know which features a rehearsal switches on.
            config = home / "config.toml"
            config.write_text(f"suppress_unstable_features_warning = true\n{config.read_text()}")
            for name, text in scenario.files.items():
                (work / name).write_text(text)
            client = TraceClient(str(work), repaired=repaired)
            full_environment = {**environment, "HOME": str(home), "CODEX_HOME": str(home)}
            end = await client.run(argv, scenario, full_environment, work)
            return normalise(client.lines, end, {str(home): "/home", str(work): "/work"})


# ── what differs from run to run ───────────────────────────────────────────

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(UUID)
_COUNTED = re.compile(r"\b(msg|rs|call|resp)_\d+\b")
"""The scripted model's counters go on from scenario to scenario."""
_TEXTS = (
    (re.compile(r"\d{4}/\d\d/\d\d/rollout-[\dT-]{19}"), "0000/00/00/rollout-0000-00-00T00-00-00"),
    # Codex names files from the root of the repository that happens to contain the temporary home.
    (re.compile(r"(?<= [ab]/)\S*/rehearsals/home-[0-9a-f]+/work/"), ""),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:0"),
    (re.compile(r"Chunk ID: [0-9a-f]+"), "Chunk ID: 000000"),
    (re.compile(r"Original token count: \d+"), "Original token count: 0"),
    (re.compile(r"Wall time: [\d.]+ seconds"), "Wall time: 0.0000 seconds"),
)
_FIELDS = {"process_id": "0", "version": "version", "user_agent": "user agent"}
_CLOCKS = ("_at", "_ms", "create_time")
_TAGS = re.compile(r"\s*<(\w+)[ >]")


CHANCE = frozenset({"exec_command_output_delta"})
"""Events that Codex sends in one run and not in the next: live output, whose first pieces it may lose."""


class Normaliser:
    """Replaces values that differ from run to run by fixed names. One per trace.

    Threads and turns are numbered as they come; other uuids all get the same name, so that one that is
    missing does not rename all others.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        if "threadId" in meta:
            self._name("thread", meta["threadId"])
        if message.get("method") == "codex/event" and params.get("id"):
            self._name("turn", params["id"])
        normalised = self.value(message)
        assert isinstance(normalised, dict)
        return normalised

    def value(self, value: Any, key: str = "") -> Any:
        match value:
            case {"role": "developer" | "user", "content": list(parts), **rest}:
                return {**self.value(rest), "role": value["role"], "content": [_part(p, self) for p in parts]}
            case {"secs": int(), "nanos": int()}:
                return {"secs": 0, "nanos": 0}
            case dict():
                return {self.text(name): self.value(inner, name) for name, inner in value.items()}
            case list():
                return [self.value(inner) for inner in value]
            case str():
                return _FIELDS.get(key) or self.text(value)
            case int() | float() if key.endswith(_CLOCKS) and not isinstance(value, bool):
                return 0
            case _:
                return value

    def text(self, text: str) -> str:
        for place, name in self._places.items():
            text = text.replace(place, name)
        for pattern, replacement in _TEXTS:
            text = pattern.sub(replacement, text)
        text = _UUID.sub(lambda match: self._names.get(match[0], "uuid"), text)
        return _COUNTED.sub(lambda match: self._name(match[1], match[0]), text)

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"{kind}-{self._counts[kind]}"
        return self._names[value]


def _part(part: Any, normaliser: Normaliser) -> Any:
    """Codex's own messages to the model are shortened: long, different in every version, and no contract."""
    tag = _TAGS.match(str(part.get("text", ""))) if isinstance(part, dict) else None
    return {**part, "text": f"<{tag[1]}>"} if tag else normaliser.value(part)


def normalise(lines: Sequence[TraceLine], end: str, places: Mapping[str, str]) -> Trace:
    """Pure. Groups the lines by call, in their order; calls in the order of their first line."""
    calls = list(dict.fromkeys(line.call for line in lines))
    by_call = _settled(sorted(lines, key=lambda line: calls.index(line.call)))
    normaliser = Normaliser(places)
    return Trace(
        tuple(TraceLine(line.who, line.call, normaliser.message(line.message)) for line in by_call), end
    )


def _settled(lines: list[TraceLine]) -> list[TraceLine]:
    """Move the end of a model's answer right after its last call, which may already run by then."""
    settled: list[TraceLine] = []
    for line in lines:
        index = len(settled)
        if event_type(line.message) in CHANCE:
            continue
        if event_type(line.message) == "raw_response_completed":
            while (
                settled[index - 1].call == line.call
                and event_type(settled[index - 1].message) != "raw_response_item"
            ):
                index -= 1
        settled.insert(index, line)
    return settled


# ── files ──────────────────────────────────────────────────────────────────


def dump(trace: Trace) -> bytes:
    """A message per line, so that a change reads well as a diff."""
    lines = b",\n".join(msgspec.json.encode(line) for line in trace.lines)
    return b'{"lines":[\n%b\n],"end":%b}\n' % (lines, msgspec.json.encode(trace.end))


def load(data: bytes) -> Trace:
    return msgspec.json.decode(data, type=Trace)
