"""Asks the serving processes of this machine which sessions they run: all at once, each by its socket."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec

from laneway.base.errors import RemoteError, WireError
from laneway.doors.local.client import connect
from laneway.doors.local.shapes import LIST, Listed, LiveSessionInfo
from laneway.doors.local.socket_files import SocketFile

ANSWER_S = 5.0
"""For a process to list its sessions: it answers at once, unless it is stopped or stuck."""


class LiveSession(msgspec.Struct, frozen=True):
    """A live session, and the socket of the process that runs it."""

    socket: SocketFile
    info: LiveSessionInfo


class LiveScan(msgspec.Struct, frozen=True):
    """The answers of the processes that were asked."""

    sessions: tuple[LiveSession, ...] = ()
    silent: tuple[SocketFile, ...] = ()
    """Processes that run but do not answer."""
    refused: tuple[tuple[SocketFile, str], ...] = ()
    """Processes that refused to answer, and why."""


async def ask(socket_files: list[SocketFile], answer_s: float) -> LiveScan:
    """The live sessions of these processes."""
    answers = await asyncio.gather(*(_ask(socket, answer_s) for socket in socket_files))
    sessions, silent, refused = [], [], []
    for socket, answer in zip(socket_files, answers, strict=True):
        if isinstance(answer, Listed):
            sessions += [LiveSession(socket, info) for info in answer.sessions]
        elif isinstance(answer, RemoteError):
            refused.append((socket, answer.message))
        elif answer == "silent":
            silent.append(socket)
    return LiveScan(tuple(sessions), tuple(silent), tuple(refused))


async def _ask(socket: SocketFile, answer_s: float) -> Listed | RemoteError | Literal["silent", "gone"]:
    try:
        async with asyncio.timeout(answer_s), connect(socket.path) as client:
            return await client.call(LIST, reply=Listed)
    except TimeoutError:
        return "silent"
    except RemoteError as refused:
        return refused
    except WireError:
        return "gone"  # the process ended meanwhile
