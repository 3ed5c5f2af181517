"""What a turn could really do: as Codex wrote it down, and as a command found out by trying."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from laneway.doors.acp.ids import thread_id
from tests.doors.acp.support import Client, Message, Refused, Stage
from tests.doors.mcp.tapped_claude import TAP

INSIDE, OUTSIDE, NETWORK = "inside", "outside", "network"
_numbers = itertools.count(1)


class Ran(NamedTuple):
    """What a turn ran with, by Codex's own record."""

    approval: Any
    sandbox: str
    network: bool
    model: str
    effort: str | None


def turns(here: Stage, session: str) -> list[Ran]:
    """Of each turn of a session, in order."""
    return [_ran(each["payload"]) for each in _record(here, session) if each["type"] == "turn_context"]


def _record(here: Stage, session: str) -> list[Message]:
    (path,) = here.home.glob(f"sessions/**/rollout-*{thread_id(session)}*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _ran(payload: Message) -> Ran:
    sandbox = payload["sandbox_policy"]
    settings = payload["collaboration_mode"]["settings"]
    return Ran(
        payload["approval_policy"],
        sandbox["type"],
        sandbox["type"] == "danger-full-access" or sandbox.get("network_access", False),
        payload["model"],
        settings["reasoning_effort"],
    )


async def tried(here: Stage, client: Client, session: str) -> set[str]:
    """What a command of this session's next turn succeeds in. Whoever is asked is the test's handler."""
    number = next(_numbers)
    inside, outside = here.work / f"inside-{number}", here.home.parent / f"outside-{number}"
    port = re.search(r"127\.0\.0\.1:(\d+)", (here.home / "config.toml").read_text())
    assert port is not None
    words = (
        f"echo x > {inside}; echo x > {outside}; (: < /dev/tcp/127.0.0.1/{port[1]}) && echo conn''ected; true"
    )
    before = set(client.tool_calls(session))
    answer = await client.prompt(session, f"%run {words}\n%say Tried.")
    assert answer == {"stopReason": "end_turn"}
    (call,) = [call for name, call in client.tool_calls(session).items() if name not in before]
    could = {INSIDE: inside.exists(), OUTSIDE: outside.exists(), NETWORK: "connected" in str(call["content"])}
    return {name for name, is_so in could.items() if is_so}


# ── the user's settings ────────────────────────────────────────────────────


def configure(here: Stage, lines: str, tables: str = "") -> None:
    """What the user wrote into config.toml instead of what stood there before."""
    path = here.home / "config.toml"
    kept = path.with_suffix(".kept")
    if not kept.exists():
        kept.write_text(path.read_text())
    path.write_text(f"{lines}\n{kept.read_text()}\n{tables}")


def enable(here: Stage, *features: str) -> None:
    """Features of Codex that are off by default, as somebody has them who knows what that means."""
    path = here.home / "config.toml"
    lines = "".join(f"{feature} = true\n" for feature in features)
    config = path.read_text().replace("[features]\n", f"[features]\n{lines}")
    path.write_text(f"suppress_unstable_features_warning = true\n{config}")


@contextmanager
def untouched(here: Stage) -> Iterator[None]:
    """config.toml stays as it is, byte by byte, in a repository that Codex could take for trusted."""
    subprocess.run(["git", "init", "-q", str(here.work)], check=True)
    path: Path = here.home / "config.toml"
    before = path.read_text()
    yield
    assert path.read_text() == before


# ── Codex itself ───────────────────────────────────────────────────────────


def tapped(here: Stage, log: Path) -> dict[str, str]:
    """The environment in which all that we say to Codex is written down."""
    codex = here.environment["LANEWAY_CODEX_BIN"]
    program = log.with_suffix(".sh")
    tap = f"exec '{sys.executable}' '{TAP}' '{log}' '{codex}' \"$@\""
    program.write_text(f'#!/bin/sh\ncase "$*" in *app-server*) {tap};; esac\nexec \'{codex}\' "$@"\n')
    program.chmod(0o700)
    return {"LANEWAY_CODEX_BIN": str(program)}


def said_to_codex(log: Path, method: str) -> list[Message]:
    """The params of all requests of a method."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    said = [json.loads(text) for way, text in lines if way == ">"]
    return [each["params"] for each in said if each.get("method") == method]


def codex_of(client: Client) -> int:
    """The process that an agent has Codex in; between them is its guardian (Linux)."""
    processes = list(_processes())
    guardians = {pid for pid, parent, words in processes if parent == client.process.pid}
    (pid,) = [pid for pid, parent, words in processes if parent in guardians and "app-server" in words]
    return pid


def _processes() -> Iterator[tuple[int, int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status, words = (folder / "stat").read_text(), (folder / "cmdline").read_text()
        except OSError:
            continue  # gone meanwhile
        yield int(folder.name), int(status.rpartition(")")[2].split()[1]), words


# ── a session's options ────────────────────────────────────────────────────


async def choose(client: Client, session: str, option: str, value: str | bool) -> list[Message]:
    """Set an option; all of them as they stand then."""
    kind = {"type": "boolean"} if isinstance(value, bool) else {}
    params = {"sessionId": session, "configId": option, **kind, "value": value}
    answer = await client.ask("session/set_config_option", params)
    options: list[Message] = answer["configOptions"]
    return options


def current(options: list[Message]) -> dict[str, Any]:
    """Where each option stands."""
    return {option["id"]: option["currentValue"] for option in options}


async def refused(going: Any) -> Message:
    """The error that a prompt ends with."""
    try:
        answer = await going
    except Refused as refusal:
        return refusal.error
    raise AssertionError(f"it was not refused: {answer}")
