"""Finds a live session on this machine: asks every serving process, and says plainly what is wrong.

A session is named by its agent id, its thread id, or its identity within the team (`session_names`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Literal

import msgspec

from laneway.base.errors import BadName, LanewayError, RemoteError, UsageError, WireBroken, WireError
from laneway.cli.session_names import ambiguous, meant_by
from laneway.cli.sessions import add_team
from laneway.doors.local.call import visit
from laneway.doors.local.places import Spot, standing
from laneway.doors.local.shapes import LIST, Listed, Seen
from laneway.store.registry import Entry
from laneway.store.store import Store

ANSWER_S = 5.0
"""For a process to say who runs there: it answers at once, unless it is stopped or stuck."""


class Found(msgspec.Struct, frozen=True):
    spot: Spot
    seen: Seen


class Heard(msgspec.Struct, frozen=True):
    """What came of asking everybody."""

    found: tuple[Found, ...] = ()
    silent: tuple[Spot, ...] = ()
    """Processes that live and do not answer."""
    refused: tuple[tuple[Spot, str], ...] = ()
    """Processes that answer that we may not ask, and why."""


def add_who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("who", metavar="WHO", help="a session's name, or its id, or the end of its id")
    add_team(parser)
    parser.add_argument("--json", action="store_true", help="as data, for programs")


async def find(
    store: Store, who: str, *, environment: Mapping[str, str] | None = None, answer_s: float = ANSWER_S
) -> Found:
    """The live session that is meant; else an error with the reason and the remedy."""
    spots = standing(environment)
    holder = pid_of_holder(store, who)
    # Whoever holds the lock runs it, as a rule: others may be slow, or hang, and need not be waited for.
    heard = await ask([spot for spot in spots if spot.pid == holder], answer_s)
    meant = _meant(heard, who, store.team)
    if not meant and not heard.silent and not heard.refused:
        heard = await ask(spots, answer_s)
        meant = _meant(heard, who, store.team)
    if len(meant) > 1:
        raise ambiguous(who, ((key, _about(each.seen)) for key, each in meant.items()))
    if not meant:
        raise absent(store, who, heard, answer_s)
    (found,) = meant.values()
    return found


def _meant(heard: Heard, who: str, team: str) -> dict[str, Found]:
    found = meant_by(
        who,
        heard.found,
        lambda each: (each.seen.agent_id, each.seen.thread_id),
        lambda each: each.seen.identity if each.seen.team == team else None,
    )
    return {each.seen.agent_id: each for each in found}


def _about(seen: Seen) -> str:
    return f"{seen.identity}@{seen.team}  {seen.state}  process {seen.pid}  {seen.cwd or ''}"


async def ask(spots: list[Spot], answer_s: float) -> Heard:
    """The live sessions of these processes."""
    answers = await asyncio.gather(*(_ask(spot, answer_s) for spot in spots))
    found, silent, refused = [], [], []
    for spot, answer in zip(spots, answers, strict=True):
        if isinstance(answer, Listed):
            found += [Found(spot, seen) for seen in answer.sessions]
        elif isinstance(answer, RemoteError):
            refused.append((spot, answer.message))
        elif answer == "silent":
            silent.append(spot)
    return Heard(tuple(found), tuple(silent), tuple(refused))


async def _ask(spot: Spot, answer_s: float) -> Listed | RemoteError | Literal["silent", "gone"]:
    try:
        async with asyncio.timeout(answer_s), visit(spot.path) as visitor:
            return await visitor.call(LIST, reply=Listed)
    except TimeoutError:
        return "silent"
    except RemoteError as refused:
        return refused
    except WireError:
        return "gone"  # it ended while we asked


def pid_of_holder(store: Store, who: str) -> int | None:
    """The process that runs this session, by the lock of its identity."""
    named = [entry.identity for entry in kept(store, who) if entry.status == "active"]
    try:
        holder = store.holder(named[0] if named else who)
    except BadName:
        return None
    return holder.pid if holder else None


def kept(store: Store, who: str) -> list[Entry]:
    """Sessions of the team that are meant, live or not."""
    return meant_by(
        who,
        store.view().entries,
        lambda entry: (entry.agent_id, entry.backend_id),
        lambda entry: entry.identity,
    )


# ── if it is not there ─────────────────────────────────────────────────────


def absent(store: Store, who: str, heard: Heard, answer_s: float) -> LanewayError:
    """Why no live session is meant, and what can be done."""
    silent = heard.silent
    known = kept(store, who)
    running = [entry for entry in known if entry.status == "active"]
    if running:
        holder = pid_of_holder(store, running[0].identity)
        words = next((text for spot, text in heard.refused if spot.pid == holder), None)
        return LanewayError(words) if words else unreachable(running[0], holder, silent, answer_s)
    if known:  # nobody holds its lock, so that no process of ours can run it
        return ended(max(known, key=lambda entry: entry.last_active or entry.started_at))
    if heard.refused:
        return LanewayError(heard.refused[0][1])
    if silent:
        pids = ", ".join(str(spot.pid) for spot in silent)
        return WireBroken(
            f"{who} was not found; but these processes did not answer within {answer_s:g} s and may "
            f"run it: {pids}. Try again, or see what they do."
        )
    return UsageError(f"There is no session {who} in team {store.team}: see `laneway sessions`.")


def unreachable(entry: Entry, pid: int | None, silent: tuple[Spot, ...], answer_s: float) -> WireBroken:
    if any(spot.pid == pid for spot in silent):
        return WireBroken(
            f"Process {pid} runs {entry.identity} and did not answer within {answer_s:g} s. It may be "
            "stopped or very busy: try again, or end it."
        )
    return WireBroken(
        f"Process {pid or '(unknown)'} runs {entry.identity} but cannot be reached: it runs on another "
        "machine or under an older Laneway, or it could not open its socket (its log says why)."
    )


def ended(entry: Entry) -> UsageError:
    why = "its process is gone" if entry.status == "stale" else f"it is {entry.status}"
    text = f"Session {entry.agent_id} of {entry.identity} does not run: {why}."
    if entry.status != "stale":
        text += f" What it reported: `laneway summary {entry.agent_id}`."
    if entry.backend_id:
        text += (
            f" To go on with it, call the `codex` tool with agent_id {entry.agent_id}, or start "
            f"`laneway mcp --identity {entry.identity} --resume {entry.agent_id}`."
        )
    return UsageError(text)
