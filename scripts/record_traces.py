"""Records golden traces: the frames of the real Codex in each scenario, and our events from them.

    python scripts/record_traces.py tests/golden [scenario ...]
    python scripts/record_traces.py tests/golden --events-only

Drives `codex app-server` directly, against the scripted model, in a bare environment. Writes one
`<scenario>.jsonl` per scenario below `<codex version>/`: a frame from Codex per line, with everything
replaced that differs between runs or machines; and beside it `<scenario>.events.json`, the same
trace translated. After an intended change of the translation, `--events-only` renews just the latter.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.ids import new_id
from laneway.base.paths import cache_home
from laneway.codex import binary, locate
from laneway.rehearsal.home import MODEL, throwaway_home
from laneway.rehearsal.server import ModelServer
from laneway.testing.tape import event_data, play
from laneway.wire.child import Child
from laneway.wire.frames import LineDecoder

DEADLINE_S = 60.0
"""For one scenario; each takes a second."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
"""No user profile and no shims: Codex runs the same programs everywhere."""


# ── the scenarios ──────────────────────────────────────────────────────────


class Cue(msgspec.Struct, frozen=True):
    """At the first frame of method `at`, send a request about the running turn."""

    at: str
    method: str
    prompt: str | None = None


class Scenario(msgspec.Struct, frozen=True):
    """One recorded conversation."""

    name: str
    turns: tuple[str, ...]
    """Prompts in the language of `laneway.rehearsal.script`; `COMPACT` asks for a compaction instead."""
    thread: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    """Our answers to requests of Codex, by method."""
    files: dict[str, str] = {}
    cue: Cue | None = None
    model: str = MODEL


COMPACT = "compact"
READ_ONLY = {"sandbox": "read-only", "approvalPolicy": "on-request"}
WRITABLE = {"sandbox": "workspace-write", "approvalPolicy": "on-request"}
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}

SCENARIOS = (
    Scenario("text", ("%say Two words, and some more.",)),
    Scenario("thoughts", ("%think Let me see.\n%say I see.",)),
    Scenario("command", ("%run printf 'one\\ntwo\\n'\n%say Printed.",), thread=WRITABLE),
    Scenario("command-fails", ("%run echo no >&2; exit 3\n%say That failed.",), thread=WRITABLE),
    Scenario(
        "command-streams",
        ("%run for i in 1 2 3; do echo line $i; sleep 0.5; done\n%say Counted.",),
        thread=WRITABLE,
    ),
    Scenario(
        "command-outlives-turn",
        (
            '%tool exec_command {"cmd": "echo begun; sleep 2; echo ended", "yield_time_ms": 250}\n%say Bye.',
            "%run sleep 3\n%say Over.",
        ),
        thread=WRITABLE,
    ),
    Scenario(
        "command-approved",
        ("%run! echo outside\n%say It ran.",),
        thread=WRITABLE,
        answers={"item/commandExecution/requestApproval": {"decision": "accept"}},
    ),
    Scenario(
        "command-declined",
        ("%run! echo outside\n%say It did not run.",),
        thread=WRITABLE,
        answers={"item/commandExecution/requestApproval": {"decision": "decline"}},
    ),
    Scenario("patch-add", ("%patch hello.txt Hello,\\nworld.\n%say Added.",), thread=WRITABLE),
    Scenario(
        "patch-edit",
        ("%edit hello.txt world. => reader.\n%say Edited.",),
        thread=WRITABLE,
        files={"hello.txt": "Hello,\nworld.\n"},
    ),
    Scenario(
        "patch-approved",
        ("%patch hello.txt Hello.\n%say Added.",),
        thread=READ_ONLY,
        answers={"item/fileChange/requestApproval": {"decision": "accept"}},
    ),
    Scenario(
        "patch-declined",
        ("%patch hello.txt Hello.\n%say Not added.",),
        thread=READ_ONLY,
        answers={"item/fileChange/requestApproval": {"decision": "decline"}},
    ),
    Scenario("plan", ("%plan Look; Leap\n%say Planned.",)),
    Scenario(
        "question",
        ("%ask Which colour? Red | Blue\n%say Chosen.",),
        answers={"item/tool/requestUserInput": {"answers": {"choice": {"answers": ["Blue"]}}}},
    ),
    Scenario(
        "tool",
        ('%tool weather {"city": "Bern"}\n%say It is sunny.',),
        thread={"dynamicTools": [WEATHER]},
        answers={
            "item/tool/call": {"contentItems": [{"type": "inputText", "text": "sunny"}], "success": True}
        },
    ),
    Scenario("failure", ("%fail 500 The model is out.", "%say Back again.")),
    Scenario(
        "interrupt",
        ("%stream 40 words over 20 seconds", "%say Next."),
        cue=Cue("item/agentMessage/delta", "turn/interrupt"),
    ),
    Scenario(
        "interrupt-command",
        ("%run echo begun; sleep 1; echo going; sleep 60",),
        thread=WRITABLE,
        cue=Cue("item/commandExecution/outputDelta", "turn/interrupt"),
    ),
    Scenario(
        "steer",
        ("%stream 4 words over 1 seconds",),
        cue=Cue("item/agentMessage/delta", "turn/steer", "%say Steered."),
    ),
    Scenario("compaction", ("%say Before.", COMPACT, "%say After.")),
    Scenario(
        "subagent",
        ('%tool spawn_agent {"message": "%say From below."}\n%say Spawned.', "%run sleep 1\n%say Waited."),
        thread=WRITABLE,
        model="gpt-5.4",
    ),
)


# ── the raw client ─────────────────────────────────────────────────────────


class Recording:
    """One app-server and all its frames, in order."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._cue = scenario.cue
        self._decoder = LineDecoder()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._child: Child | None = None
        self._turn_done = asyncio.Event()
        self._thread_id = ""
        self.frames: list[dict[str, Any]] = []

    async def run(self, codex: str, home: Path, work: Path) -> None:
        environment = {**ENVIRONMENT, "HOME": str(home), "CODEX_HOME": str(home)}
        self._child = await Child.spawn([codex, "app-server"], on_stdout=self._feed, env=environment)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._converse(work)
                await asyncio.gather(*self._waiting.values())
        finally:
            await self._child.stop()

    async def _converse(self, work: Path) -> None:
        client = {"name": "laneway", "title": "Laneway", "version": "0"}
        await self._post("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})
        started = await self._post("thread/start", {"cwd": str(work), **self._scenario.thread})
        self._thread_id = started["thread"]["id"]
        tickets = itertools.count(1)
        for prompt in self._scenario.turns:
            self._turn_done.clear()
            if prompt == COMPACT:
                await self._post("thread/compact/start", {"threadId": self._thread_id})
            else:
                ticket = f"ticket-{next(tickets)}"
                await self._post("turn/start", self._input(prompt, clientUserMessageId=ticket))
            await self._turn_done.wait()

    def _input(self, prompt: str, **more: Any) -> dict[str, Any]:
        return {"threadId": self._thread_id, "input": [{"type": "text", "text": prompt}], **more}

    def _post(self, method: str, params: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request_id = len(self._waiting) + 1
        self._waiting[request_id] = answer
        self._send({"id": request_id, "method": method, "params": params})
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        if self._child is not None:
            self._child.write(msgspec.json.encode(message) + b"\n")

    def _feed(self, data: bytes) -> None:
        for line in self._decoder.feed(data):
            frame = msgspec.json.decode(line)
            self.frames.append(frame)
            self._react(frame)

    def _react(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method is None:
            answer = self._waiting[frame["id"]]
            if "error" in frame:
                answer.set_exception(RuntimeError(f"Codex refused: {frame['error']}"))
            else:
                answer.set_result(frame["result"])
        elif "id" in frame:
            self._send({"id": frame["id"], "result": self._scenario.answers.get(method)})
        elif method == "turn/completed" and frame["params"]["threadId"] == self._thread_id:
            self._turn_done.set()
        elif self._cue is not None and method == self._cue.at:
            self._send_cue(self._cue, frame["params"]["turnId"])
            self._cue = None

    def _send_cue(self, cue: Cue, turn_id: str) -> None:
        if cue.prompt is None:
            self._post(cue.method, {"threadId": self._thread_id, "turnId": turn_id})
        else:
            self._post(cue.method, self._input(cue.prompt, expectedTurnId=turn_id))


# ── normalising ────────────────────────────────────────────────────────────

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NAMED = re.compile(rf"(?P<uuid>{UUID})|\b(?P<kind>msg|rs|call)_\d+\b")
"""Ids that differ between runs: Codex's uuids and the scripted model's counters."""
TEXTS = (
    (re.compile(r"\d{4}/\d\d/\d\d/rollout-[\dT-]{19}"), "0000/00/00/rollout-0000-00-00T00-00-00"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:0"),
)
FIELDS = {"processId": "0", "serverName": "host", "agentNickname": "nickname"}
"""Fields that depend on the machine or on chance."""
NOISE = "bubblewrap on PATH"
"""A warning about this machine, not about the scenario."""


class Normaliser:
    """Replaces everything that differs between runs. One per trace: names count from one in each."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def value(self, value: Any, key: str = "") -> Any:
        match value:
            case dict() if key == "gitInfo":
                return None
            case dict():
                return {self.text(name): self.value(inner, name) for name, inner in value.items()}
            case list():
                return [self.value(inner) for inner in value]
            case str() if key == "userAgent":
                return re.sub(r"\(.*?\)", "(system)", value, count=1)
            case str():
                return FIELDS.get(key) or self.text(value)
            case int() | float() if key.endswith(("At", "Ms")):
                return 0
            case _:
                return value

    def text(self, text: str) -> str:
        for place, name in self._places.items():
            text = text.replace(place, name)
        for pattern, replacement in TEXTS:
            text = pattern.sub(replacement, text)
        return NAMED.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        if match[0] not in self._names:
            kind = match["kind"] or "uuid"
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[match[0]] = f"{kind}-{self._counts[kind]}"
        return self._names[match[0]]


# ── the files ──────────────────────────────────────────────────────────────


async def record(scenario: Scenario, codex: str) -> list[bytes]:
    """Return the normalised frames of one scenario."""
    work = cache_home() / "rehearsals" / new_id("work")
    work.mkdir(parents=True)
    try:
        for name, text in scenario.files.items():
            (work / name).write_text(text)
        async with ModelServer() as model:
            with throwaway_home(model.base_url, scenario.model) as home:
                recording = Recording(scenario)
                await recording.run(codex, home, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    normaliser = Normaliser({str(home): "/home", str(work): "/work"})
    lines = (msgspec.json.encode(normaliser.value(frame)) for frame in recording.frames)
    return [line for line in lines if NOISE.encode() not in line]


def record_all(target: Path, names: list[str]) -> None:
    codex = locate.find()
    folder = target / binary.spell(binary.probe(codex))
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for scenario in SCENARIOS:
        if not names or scenario.name in names:
            lines = asyncio.run(record(scenario, codex.path))
            trace = folder / f"{scenario.name}.jsonl"
            trace.write_bytes(b"".join(line + b"\n" for line in lines))
            write_events(trace)
            print(f"{scenario.name}: {len(lines)} frames")


def write_events(trace: Path) -> None:
    """One event per line, so that a change reads well as a diff."""
    events = event_data(asyncio.run(play(trace.read_bytes().splitlines())))
    lines = ",\n".join(msgspec.json.encode(event).decode() for event in events)
    trace.with_suffix(".events.json").write_text(f"[\n{lines}\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record golden traces from the real Codex.")
    parser.add_argument("target", type=Path)
    parser.add_argument("scenarios", nargs="*", help="only these; all without")
    parser.add_argument("--events-only", action="store_true", help="translate the stored traces anew")
    options = parser.parse_args()
    unknown = set(options.scenarios) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}")
    if options.events_only:
        for trace in sorted(options.target.glob("*/*.jsonl")):
            write_events(trace)
    else:
        record_all(options.target, options.scenarios)


if __name__ == "__main__":
    main()
