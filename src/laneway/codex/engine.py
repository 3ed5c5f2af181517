"""The Codex engine: threads on one app-server, which is started when it is first needed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import EngineError, EngineLost, EngineRefused
from laneway.codex import binary, hello, sandbox
from laneway.codex.link import HANDSHAKE_S, IDEMPOTENT, Link
from laneway.codex.locate import Binary, child_environment
from laneway.codex.running import Connect, Runner
from laneway.codex.thread import CodexThread, history, thread_info
from laneway.core.ports import Abilities, Host, Page, ThreadInfo, ThreadList, ThreadSpec
from laneway.core.tools import Tool
from laneway.wire.child import Child, Exit
from laneway.wire.launch import Launched
from laneway.wire.peer import Raw

log = logging.getLogger(__name__)

Asked = TypeVar("Asked")

GIVE_BACK_S = 2.0
"""How long somebody who no longer wants a thread is kept until it is given back; then it goes on alone."""
_LISTED = {"sourceKinds": ["cli", "vscode", "exec", "appServer", "unknown"], "modelProviders": []}
"""Left alone, Codex hides what `codex exec` or another model provider ran. Subagents stay hidden."""


class CodexEngine(Runner[Link]):
    def __init__(
        self,
        connect: Connect,
        *,
        handshake_s: float = HANDSHAKE_S,
        is_greeted: bool = False,
        diagnose: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(lambda: Link.open(connect, handshake_s, is_greeted=is_greeted), diagnose)
        self._leaving: dict[str, asyncio.Task[None]] = {}
        """Threads that nobody wants any more, while they are opened and given back."""

    async def _asked(self, work: Callable[[Link], Awaitable[Asked]]) -> Asked:
        """Ask for something that may be asked twice: the link may be dead, and we do not know it yet."""
        link = await self.link()
        try:
            return await work(link)
        except EngineLost:
            if not self.renews:
                raise
        return await work(await self.link())

    async def abilities(self) -> Abilities:
        return (await self.link()).abilities

    async def start(self, spec: ThreadSpec, host: Host) -> CodexThread:
        return await self._asked(lambda link: self._start(link, spec, host))

    async def _start(self, link: Link, spec: ThreadSpec, host: Host) -> CodexThread:
        mode, policy = sandbox.asked(spec.sandbox, spec.config), None
        if mode is not None or (spec.sandbox is None and "sandbox_mode" not in spec.config):
            known = spec.users_config
            config = await _users_config(link, spec.cwd) if known is None else known
            mode = mode or sandbox.configured(config, str(spec.cwd))
            if mode is not None:
                policy = sandbox.policy(mode, config.get(sandbox.TABLE), spec.config)
                kept = sandbox.without(spec.config)
                spec = msgspec.structs.replace(spec, sandbox=sandbox.START, config=kept)
        params: dict[str, Any] = {"cwd": str(spec.cwd), **_common(spec)}
        if spec.ephemeral:
            params["ephemeral"] = True
        if spec.tools:
            params["dynamicTools"] = [_dynamic_tool(tool) for tool in spec.tools]
        return await self._open(link, host, "thread/start", {**params, **spec.native}, policy)

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        # The developer instructions go along every time: compaction drops them otherwise.
        params = {"threadId": thread_id, "excludeTurns": True, **_common(spec)}
        if spec.moves:
            params["cwd"] = str(spec.cwd)
        params |= spec.native
        if thread_id in self._leaving:
            await asyncio.wait((self._leaving[thread_id],))  # or it would be taken from us, too
        return await self._asked(lambda link: self._open(link, host, "thread/resume", params))

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> CodexThread:
        params = {"threadId": thread_id, "excludeTurns": True, "cwd": str(spec.cwd), **_common(spec)}
        params |= spec.native
        return await self._asked(lambda link: self._open(link, host, "thread/fork", params))

    async def _open(
        self,
        link: Link,
        host: Host,
        method: str,
        params: dict[str, Any],
        policy: dict[str, Any] | None = None,
    ) -> CodexThread:
        opened: list[CodexThread] = []

        def attach(raw: Raw) -> None:
            # On the reader: the thread must be there before its first notification, which may come along.
            opened.append(CodexThread(link, host, msgspec.json.decode(raw), policy))

        calling = asyncio.ensure_future(link.call(method, params, on_reply=attach))
        try:
            await asyncio.shield(calling)
        except asyncio.CancelledError:
            # Codex cannot be stopped halfway. It opens the thread, and would keep everybody else out of it.
            leaving = asyncio.get_running_loop().create_task(_give_back(calling, opened))
            if method == "thread/resume":
                self._leave(params["threadId"], leaving)
            await asyncio.wait((leaving,), timeout=GIVE_BACK_S)
            raise
        return opened[0]

    def _leave(self, thread_id: str, leaving: asyncio.Task[None]) -> None:
        self._leaving[thread_id] = leaving
        leaving.add_done_callback(lambda _: self._leaving.pop(thread_id, None))

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        return await self._asked(
            lambda link: history(link, thread_id, older, limit, oldest_first=oldest_first)
        )

    async def read(self, thread_id: str) -> ThreadInfo:
        answer = await self.call("thread/read", {"threadId": thread_id})
        return thread_info(answer["thread"])

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        params: dict[str, Any] = {"cursor": cursor, "limit": limit, **_LISTED}
        if cwd is not None:
            params["cwd"] = str(cwd)
        answer = await self.call("thread/list", params)
        return ThreadList(tuple(thread_info(thread) for thread in answer["data"]), answer.get("nextCursor"))

    async def models(self) -> list[dict[str, Any]]:
        models: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            answer = await self.call("model/list", {"cursor": cursor})
            models += answer.get("data") or []
            cursor = answer.get("nextCursor")
            if not cursor:
                return models

    async def call(self, method: str, params: Any = None) -> Any:
        """Anything else that app-server offers. Not for what starts a turn: that is a `TurnSpec`'s."""
        if method in IDEMPOTENT:
            return await self._asked(lambda link: link.call(method, params))
        return await (await self.link()).call(method, params)


async def _users_config(link: Link, cwd: Path) -> dict[str, Any]:
    """What the user's configuration comes to in a folder; empty if Codex does not tell."""
    try:
        answer = await link.call("config/read", {"cwd": str(cwd), "includeLayers": False})
    except EngineRefused as refused:
        log.info("the user's configuration could not be read: %s", refused)
        return {}
    config = answer.get("config") if isinstance(answer, dict) else None
    return config if isinstance(config, dict) else {}


async def _give_back(calling: Awaitable[Any], opened: list[CodexThread]) -> None:
    try:
        await calling
        await opened[0].release()
    except EngineError as problem:
        log.debug("a thread that nobody waits for was not opened, or not given back: %s", problem)


def codex_engine(
    found: Binary, environment: Mapping[str, str] | None = None, launched: Launched | None = None
) -> CodexEngine:
    """The engine on one Codex executable; `launched` is an app-server of it that is already on its way."""
    return CodexEngine(
        app_server(found, environment, launched),
        is_greeted=True,
        diagnose=lambda: binary.check_age(binary.probe(found), found.path),
    )


def app_server(
    found: Binary, environment: Mapping[str, str] | None = None, launched: Launched | None = None
) -> Connect:
    """How to reach Codex: its app-server as a supervised child, greeted as it starts.

    Nothing happens before the first call.
    """

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        nonlocal launched
        early, launched = launched, None
        try:
            if early is not None:
                return await Child.adopt(early, on_stdout=on_bytes, on_end=on_end)
            return await Child.spawn(
                [found.path, "app-server"],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(os.environ if environment is None else environment),
                first=hello.FIRST,
            )
        except OSError as problem:
            raise binary.cannot_run(found.path, problem) from problem

    return connect


def _common(spec: ThreadSpec) -> dict[str, Any]:
    """Only what somebody asked for: the user's own config rules the rest."""
    wanted = {
        "model": spec.model,
        "sandbox": spec.sandbox,
        "approvalPolicy": spec.approval_policy,
        "baseInstructions": spec.base_instructions,
        "developerInstructions": spec.developer_instructions,
        "config": {**spec.config, **spec.extras} or None,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def _dynamic_tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
    }
