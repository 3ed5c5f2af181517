"""A test handshake with an MCP server or ACP agent: starts it, initializes it, lists its tools, ends it.

Works with any server: invalid lines on its standard output, unexpected answers, its own requests,
silence and a crash are all reported, and none is waited for beyond the deadline. Its whole process
tree has ended when `shake` returns.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.errors import RemoteError, WireError
from laneway.base.plain import code_label, plain, quoted
from laneway.base.redact import redact
from laneway.cli.clients.entry import EntryStart
from laneway.cli.rpc_program import RpcProgram
from laneway.wire.peer import METHOD_NOT_FOUND, Raw

DEADLINE_S = 30.0
"""For all of it. Clients give a server 10 to 30 seconds; ours needs half of one."""
PROTOCOL = "2025-11-25"
"""The newest version that begins with a handshake; every server answers with one it knows."""
ACP = 1
"""The stable version of ACP."""
MAX_PAGES = 20
"""Of a list of tools; more are not counted."""
MAX_TOOLS = 2000
MAX_TAIL_LINES = 12
MAX_TAIL_CHARS = 2000
"""Of a server's standard error: enough for the end of a traceback, little enough for a screen."""
MAX_NAME_CHARS = 200


class HandshakeResult(msgspec.Struct, frozen=True):
    """The result of a handshake. `problem` is empty if all is well."""

    server: str = ""
    version: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    """Of an MCP server; an ACP agent lists none."""
    seconds: float = 0.0
    strange_lines: int = 0
    """On standard output, which is for messages alone: some clients disconnect because of one."""
    problem: str = ""
    remedy: str = ""
    stderr: str = ""

    @property
    def is_good(self) -> bool:
        return not self.problem


class _Broken(Exception):
    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


async def shake(
    start: EntryStart, deadline_s: float = DEADLINE_S, *, is_agent: bool = False
) -> HandshakeResult:
    """Start a server as its client would, and do the handshake. Never raises for what the server does.

    `is_agent`: the client is an editor, and what is started an ACP agent.
    """
    if start.problem:
        return HandshakeResult(problem=start.problem, remedy="Try it in the client itself.")
    began = time.monotonic()
    handshake = _ServerHandshake()
    try:
        async with asyncio.timeout(deadline_s):
            await handshake.open(start)
            proof = await (handshake.ask_agent() if is_agent else handshake.ask())
    except TimeoutError:
        waited = f"It did not answer within {deadline_s:g} seconds"
        doing = f" ({handshake.doing} was open)." if handshake.doing else "."
        proof = HandshakeResult(
            problem=waited + doing, remedy="Give it more with --deadline, or run it by hand."
        )
    except (OSError, ValueError) as problem:
        return HandshakeResult(problem=_unstartable(start, problem), remedy=_REMEDY_PATH)
    except _Broken as broken:
        proof = HandshakeResult(problem=broken.problem, remedy=broken.remedy)
    finally:
        await handshake.server.aclose()
    child = handshake.server.child
    tail = "" if proof.is_good or child is None else _last_words(child.stderr_tail)
    seconds = round(time.monotonic() - began, 3)
    return msgspec.structs.replace(
        proof, seconds=seconds, strange_lines=handshake.server.strange_lines, stderr=tail
    )


_REMEDY_PATH = "Check that the program is installed and that its path is right."


def _unstartable(start: EntryStart, problem: OSError | ValueError) -> str:
    if not start.folder.is_dir():
        return f"The folder {code_label(str(start.folder))} is not there."
    # `ValueError`: a NUL in a word or in a variable.
    why = problem.strerror if isinstance(problem, OSError) else "it has a character that no command can have"
    return f"{quoted(start.words[0])} cannot be started: {why or 'the system refused'}."


class _ServerHandshake:
    """One handshake with one server."""

    def __init__(self) -> None:
        self.doing = ""
        self.server = RpcProgram("server", _serve, _ignore)

    async def open(self, start: EntryStart) -> None:
        # `execvp` searches the PATH of its caller: the guardian's, which is the entry's.
        await self.server.open(start.words, start.environment, start.folder)

    async def ask(self) -> HandshakeResult:
        hello = await self._request(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": {"name": "laneway-handshake", "version": __version__},
            },
        )
        info = hello.get("serverInfo")
        info = info if isinstance(info, dict) else {}
        self.server.peer.notify("notifications/initialized", may_drop=False)
        capabilities = hello.get("capabilities")
        has_tools = isinstance(capabilities, dict) and "tools" in capabilities
        return HandshakeResult(
            server=_short(info.get("name")),
            version=_short(info.get("version")),
            protocol=_short(hello.get("protocolVersion")),
            tools=await self._tools() if has_tools else (),
        )

    async def ask_agent(self) -> HandshakeResult:
        about = {"name": "laneway-handshake", "version": __version__}
        params = {"protocolVersion": ACP, "clientCapabilities": {}, "clientInfo": about}
        hello = await self._request("initialize", params)
        version = hello.get("protocolVersion")
        if version != ACP:
            raise _Broken("It answers, but not as an ACP agent does.", "Is it an MCP server?")
        info = hello.get("agentInfo")
        info = info if isinstance(info, dict) else {}
        name = _short(info.get("title")) or _short(info.get("name"))
        return HandshakeResult(server=name, version=_short(info.get("version")), protocol=f"ACP {version}")

    async def _tools(self) -> tuple[str, ...]:
        names: list[str] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            page = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise _Broken("Its list of tools is not a list.", "Report it to the maker of that server.")
            names += [_short(tool.get("name")) for tool in tools if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if cursor is None or len(names) >= MAX_TOOLS:
                break
        return tuple(names[:MAX_TOOLS])

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.doing = method
        try:
            result = await self.server.peer.call(method, params)
        except RemoteError as refusal:
            words = _short(refusal.message)
            raise _Broken(f"It refused {method}: {words} ({refusal.code}).") from refusal
        except WireError as lost:
            raise _Broken(*self._how_it_ended()) from lost
        if not isinstance(result, dict):
            raise _Broken(f"Its answer to {method} is not an object.", "Is it the right program?")
        return result

    def _how_it_ended(self) -> tuple[str, str]:
        how = f"It ended before it answered {self.doing}: {self.server.exit or 'it vanished'}."
        return how, "Its last words say why; run the command by hand to see more."


async def _serve(method: str, params: Raw, request_id: bytes) -> Any:
    if method == "ping":
        return {}
    raise RemoteError(METHOD_NOT_FOUND, f"A handshake offers no {method[:MAX_NAME_CHARS]}")


def _ignore(method: str, params: Raw, frame: bytes) -> None:
    pass


def _short(value: Any) -> str:
    return code_label(value, MAX_NAME_CHARS) if isinstance(value, str) else ""


def _last_words(tail: str) -> str:
    lines = [line.rstrip() for line in tail.splitlines() if line.strip()]
    return redact(plain("\n".join(lines[-MAX_TAIL_LINES:])))[-MAX_TAIL_CHARS:]
