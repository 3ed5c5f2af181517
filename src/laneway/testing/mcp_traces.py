"""One script of calls against any MCP server on standard input and output, and what it said, made comparable.

`converse` drives a command line through a scenario of `laneway.testing.mcp_scenarios` and
waits for messages, never for the clock. `normalise` gives all that differs from run to run
the same name every time, and puts what belongs to one call together: calls are independent,
and the order in which two of them are told of is chance. `laneway.testing.mcp_compare` compares traces.

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
"""From the end of standard input to calling a server deaf to it."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
"""No user's profile, no tool's shim: what Codex runs is the same everywhere."""


# ── the script ─────────────────────────────────────────────────────────────


class Send(msgspec.Struct, frozen=True):
    """A message of the client. In a text, `$thread-1` is the first thread heard of, `$work` the folder."""

    message: dict[str, Any]


class Until(msgspec.Struct, frozen=True):
    """Wait for the answer to a request, for an event of a type, or for a request of the server's."""

    answer: int | str | None = None
    event: str | None = None
    request: str | None = None
    repaired: bool = False
    """The removed server never says this: only its replacement is waited for."""


class Reply(msgspec.Struct, frozen=True):
    """Answer the server's oldest open request."""

    result: Any


Step: TypeAlias = Send | Until | Reply


class Scenario(msgspec.Struct, frozen=True):
    name: str
    steps: tuple[Step, ...]
    files: dict[str, str] = {}
    """What lies in the folder that Codex works in."""


class Line(msgspec.Struct, frozen=True):
    """One message and who said it. `call` is the request that it belongs to."""

    who: str
    call: str
    message: dict[str, Any]


class Trace(msgspec.Struct, frozen=True):
    lines: tuple[Line, ...]
    end: str
    """What came of closing standard input: `exit code 0`, or how it had to be ended."""


# ── the client ─────────────────────────────────────────────────────────────


class NotHeard(Exception):
    """The server did not say what the script waits for."""

    def __init__(self, step: Step, heard: Sequence[Line], stderr: str) -> None:
        said = "\n".join(msgspec.json.encode(line.message).decode()[:300] for line in heard[-5:])
        super().__init__(f"still waiting for {step}; the last that was heard:\n{said}\n{stderr[-2000:]}")


class Client:
    """One server and all that it and we said, in order."""

    def __init__(self, work: str, *, repaired: bool) -> None:
        self._repaired = repaired
        self.lines: list[Line] = []
        self._places = {"$work": work}
        self._decoder = LineDecoder()
        self._child: Child | None = None
        self._open: list[tuple[Any, str, str]] = []
        self._said = asyncio.Event()
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
                    raise self._not_heard(step) from None
            case Until():
                pass

    async def _wait(self, until: Until) -> None:
        while not self._has(until):
            if self._is_over:
                raise self._not_heard(until)
            self._said.clear()
            await self._said.wait()

    def _has(self, until: Until) -> bool:
        if until.request is not None:
            return any(method == until.request for _, _, method in self._open)
        return any(line.who == "server" and _meets(line.message, until) for line in self.lines)

    def _send(self, message: dict[str, Any], call: str | None = None) -> None:
        self.lines.append(Line("client", _call_of(message) if call is None else call, message))
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
            line = Line("server", _call_of(message), message)
            self.lines.append(line)
            if "method" in message and "id" in message:
                self._open.append((message["id"], line.call, str(message["method"])))
            thread = message.get("params", {}).get("_meta", {}).get("threadId")
            if thread is not None and thread not in self._threads:
                self._threads.append(thread)
        self._said.set()

    def _not_heard(self, step: Step) -> NotHeard:
        return NotHeard(step, self.lines, self._child.stderr_tail if self._child is not None else "")

    def _on_end(self, ended: Any) -> None:
        self._is_over = True
        self._said.set()


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
    """The request that a message belongs to, as text; the empty text for what stands alone."""
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
    """Start the server on a throw-away home with the scripted model, play the scenario, normalise."""
    async with ModelServer() as model:
        with throwaway_home(model.base_url) as home:
            work = work_beside(home)
            for name, text in scenario.files.items():
                (work / name).write_text(text)
            client = Client(str(work), repaired=repaired)
            own = {**environment, "HOME": str(home), "CODEX_HOME": str(home)}
            end = await client.run(argv, scenario, own, work)
            return normalise(client.lines, end, {str(home): "/home", str(work): "/work"})


# ── what differs from run to run ───────────────────────────────────────────

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(UUID)
_COUNTED = re.compile(r"\b(msg|rs|call|resp)_\d+\b")
"""The scripted model's counters go on from scenario to scenario."""
_TEXTS = (
    (re.compile(r"\d{4}/\d\d/\d\d/rollout-[\dT-]{19}"), "0000/00/00/rollout-0000-00-00T00-00-00"),
    # Codex names files from the root of the repository that the throw-away home happens to lie in.
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
"""Events that Codex tells in one run and not in the next: live output, whose first pieces it may lose."""


class Normaliser:
    """Gives all that differs the same name every time. One per trace.

    Threads and turns are numbered as they come; other uuids are not told apart, so that
    one that is missing does not rename all behind it.
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
        named = self.value(message)
        assert isinstance(named, dict)
        return named

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
        text = _UUID.sub(lambda found: self._names.get(found[0], "uuid"), text)
        return _COUNTED.sub(lambda found: self._name(found[1], found[0]), text)

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"{kind}-{self._counts[kind]}"
        return self._names[value]


def _part(part: Any, normaliser: Normaliser) -> Any:
    """What Codex itself tells the model is long, changes with every version, and is nobody's contract."""
    tag = _TAGS.match(str(part.get("text", ""))) if isinstance(part, dict) else None
    return {**part, "text": f"<{tag[1]}>"} if tag else normaliser.value(part)


def normalise(lines: Sequence[Line], end: str, places: Mapping[str, str]) -> Trace:
    """Pure. Lines of one call stand together, in their order; calls in the order of their first line."""
    calls = list(dict.fromkeys(line.call for line in lines))
    together = _settled(sorted(lines, key=lambda line: calls.index(line.call)))
    normaliser = Normaliser(places)
    return Trace(tuple(Line(line.who, line.call, normaliser.message(line.message)) for line in together), end)


def _settled(lines: list[Line]) -> list[Line]:
    """The end of a model's answer is told while its last call may already run: put right behind the call."""
    settled: list[Line] = []
    for line in lines:
        at = len(settled)
        if event_type(line.message) in CHANCE:
            continue
        if event_type(line.message) == "raw_response_completed":
            while (
                settled[at - 1].call == line.call
                and event_type(settled[at - 1].message) != "raw_response_item"
            ):
                at -= 1
        settled.insert(at, line)
    return settled


# ── files ──────────────────────────────────────────────────────────────────


def dump(trace: Trace) -> bytes:
    """A message per line, so that a change reads well as a diff."""
    lines = b",\n".join(msgspec.json.encode(line) for line in trace.lines)
    return b'{"lines":[\n%b\n],"end":%b}\n' % (lines, msgspec.json.encode(trace.end))


def load(data: bytes) -> Trace:
    return msgspec.json.decode(data, type=Trace)
