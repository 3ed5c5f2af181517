"""Finds a live session on this machine by asking every serving process; explains why one is not found.

A session is named by its agent id, its thread id, or its identity within the team (`session_names`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from laneway.base.errors import BadName, LanewayError, UsageError, WireBroken
from laneway.cli.session_names import ambiguous, matching
from laneway.cli.stores import add_team
from laneway.doors.local.scan import ANSWER_S, LiveScan, LiveSession, ask
from laneway.doors.local.shapes import LiveSessionInfo
from laneway.doors.local.socket_files import SocketFile, live_sockets
from laneway.store.registry import Entry
from laneway.store.store import Store


def add_who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("who", metavar="WHO", help="a session's name, or its id, or the end of its id")
    add_team(parser)
    parser.add_argument("--json", action="store_true", help="as data, for programs")


async def find(
    store: Store, who: str, *, environment: Mapping[str, str] | None = None, answer_s: float = ANSWER_S
) -> LiveSession:
    """The live session that `who` names; else an error with the reason and the remedy."""
    socket_files = live_sockets(environment)
    holder = pid_of_holder(store, who)
    # Usually the process that holds the lock runs it: others may be slow, or hang, and need not be asked.
    scan = await ask([socket for socket in socket_files if socket.pid == holder], answer_s)
    matches = _matching(scan, who, store.team)
    if not matches and not scan.silent and not scan.refused:
        scan = await ask(socket_files, answer_s)
        matches = _matching(scan, who, store.team)
    if len(matches) > 1:
        raise ambiguous(who, ((key, _about(each.info)) for key, each in matches.items()))
    if not matches:
        raise not_found(store, who, scan, answer_s)
    (session,) = matches.values()
    return session


def _matching(scan: LiveScan, who: str, team: str) -> dict[str, LiveSession]:
    sessions = matching(
        who,
        scan.sessions,
        lambda each: (each.info.agent_id, each.info.thread_id),
        lambda each: each.info.identity if each.info.team == team else None,
    )
    return {each.info.agent_id: each for each in sessions}


def _about(info: LiveSessionInfo) -> str:
    return f"{info.identity}@{info.team}  {info.state}  process {info.pid}  {info.cwd or ''}"


def pid_of_holder(store: Store, who: str) -> int | None:
    """The process that runs this session, by the lock of its identity."""
    named = [entry.identity for entry in stored_entries(store, who) if entry.status == "active"]
    try:
        holder = store.holder(named[0] if named else who)
    except BadName:
        return None
    return holder.pid if holder else None


def stored_entries(store: Store, who: str) -> list[Entry]:
    """Records of the team's sessions that `who` names, live or not."""
    return matching(
        who,
        store.view().entries,
        lambda entry: (entry.agent_id, entry.backend_id),
        lambda entry: entry.identity,
    )


# ── why it is not found ────────────────────────────────────────────────────


def not_found(store: Store, who: str, scan: LiveScan, answer_s: float) -> LanewayError:
    """The error that says why no live session was found, and what can be done."""
    silent = scan.silent
    known = stored_entries(store, who)
    running = [entry for entry in known if entry.status == "active"]
    if running:
        holder = pid_of_holder(store, running[0].identity)
        refusal = next((text for socket, text in scan.refused if socket.pid == holder), None)
        return LanewayError(refusal) if refusal else unreachable(running[0], holder, silent, answer_s)
    if known:  # nobody holds its lock, so no process of ours can be running it
        return not_running(max(known, key=lambda entry: entry.last_active or entry.started_at))
    if scan.refused:
        return LanewayError(scan.refused[0][1])
    if silent:
        pids = ", ".join(str(socket.pid) for socket in silent)
        return WireBroken(
            f"{who} was not found; but these processes did not answer within {answer_s:g} s and may "
            f"run it: {pids}. Try again, or see what they do."
        )
    return UsageError(f"There is no session {who} in team {store.team}: see `laneway sessions`.")


def unreachable(entry: Entry, pid: int | None, silent: tuple[SocketFile, ...], answer_s: float) -> WireBroken:
    if any(socket.pid == pid for socket in silent):
        return WireBroken(
            f"Process {pid} runs {entry.identity} and did not answer within {answer_s:g} s. It may be "
            "stopped or very busy: try again, or end it."
        )
    return WireBroken(
        f"Process {pid or '(unknown)'} runs {entry.identity} but cannot be reached: it runs on another "
        "machine or under an older Laneway, or it could not open its socket (its log says why)."
    )


def not_running(entry: Entry) -> UsageError:
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
