"""The engine on a real `codex mcp-server` (0.104 … 0.153.4), for users who stay with an old Codex.

One process, started at the first call. It does less than app-server and says so: a thread lives no
longer than its process, has no history, none of our tools, one model for its whole life, and gets the
context of a turn in front of the prompt. Other MCP messages are passed through (`forward`,
`forward_notification`, `connect_client`).
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from laneway.base.errors import BinaryError, EngineRefused, ThreadUnknown
from laneway.codex import binary
from laneway.codex import relay_calls as calls
from laneway.codex.link import HANDSHAKE_S
from laneway.codex.locate import Binary, child_environment, codex_home
from laneway.codex.relay_link import FORWARD_S, RelayClient, RelayLink
from laneway.codex.relay_thread import RelayThread
from laneway.codex.running import Connect, EngineBase
from laneway.core.models import Model
from laneway.core.offers import Offers
from laneway.core.ports import Abilities, Host, Page, ThreadInfo, ThreadList, ThreadSpec
from laneway.wire.child import Child, Exit
from laneway.wire.peer import Raw

LAST = (0, 153, 4)
"""The last Codex with an `mcp-server`."""


class RelayEngine(EngineBase[RelayLink]):
    def __init__(
        self,
        connect: Connect,
        *,
        handshake_s: float = HANDSHAKE_S,
        forward_s: float = FORWARD_S,
        diagnose: Callable[[], None] | None = None,
        home: Path | None = None,
    ) -> None:
        def run() -> Awaitable[RelayLink]:
            return RelayLink.open(connect, lambda: self._client, handshake_s=handshake_s, forward_s=forward_s)

        super().__init__(run, diagnose, home)
        self._client: RelayClient | None = None

    # ── threads ────────────────────────────────────────────────────────────

    async def abilities(self) -> Abilities:
        return (await self.link()).abilities

    async def start(self, spec: ThreadSpec, host: Host) -> RelayThread:
        """A thread that begins with its first turn; `ThreadKnown` then reports its id."""
        calls.check_spec(spec)
        link = await self.link()
        thread = RelayThread(link, host, spec)
        link.track(thread)
        return thread

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> RelayThread:
        """Only a thread that this process has started and that has no owner."""
        thread = self._find(thread_id)
        if thread is None:
            raise EngineRefused(
                "codex-reply",
                0,
                f"`codex mcp-server` cannot go on with thread {thread_id}, which another process of it"
                " began: start a new session, or use --backend app-server",
            )
        if thread.has_owner:
            raise EngineRefused("codex-reply", 0, f"thread {thread_id} is in use")
        thread.set_owner(host)
        return thread

    def _find(self, thread_id: str) -> RelayThread | None:
        return self._link.threads.get(thread_id) if self._link is not None else None

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> RelayThread:
        raise calls.unsupported("fork", "`codex mcp-server` cannot copy a thread")

    async def read(self, thread_id: str) -> ThreadInfo:
        thread = self._find(thread_id)
        if thread is None:
            raise ThreadUnknown(thread_id)
        return thread.info

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        raise calls.unsupported("history", "`codex mcp-server` does not tell what was said before")

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        """The threads of this process; the old server lists none."""
        threads = self._link.threads.values() if self._link is not None else ()
        infos = [thread.info for thread in threads if cwd is None or thread.info.cwd == str(cwd)]
        return ThreadList(tuple(infos[:limit]), None)

    @property
    def offers(self) -> Offers:
        from laneway.codex.offers import APPROVALS, SANDBOXES  # not before a front end asks

        return Offers(
            live_output=True, exit_codes=True, codex_config=True, sandboxes=SANDBOXES, approvals=APPROVALS
        )

    async def models(self) -> tuple[Model, ...]:
        raise calls.unsupported("models", "`codex mcp-server` does not tell which models there are")

    # ── passed through ─────────────────────────────────────────────────────

    def connect_client(self, client: RelayClient | None) -> None:
        """Set who gets the child's requests and notifications. Without one they are refused and dropped."""
        self._client = client

    async def forward(self, method: str, params: Raw) -> Raw:
        """Send a client's request that Laneway does not serve; only its id changes. Starts the child."""
        return await (await self.link()).forward(method, params)

    def forward_notification(self, method: str, params: Raw) -> None:
        """Send a client's notification; it is dropped if no child runs."""
        if self._link is not None and self._link.is_alive:
            self._link.forward_notification(method, params)


def relay_engine(codex: Binary, environment: Mapping[str, str] | None = None) -> RelayEngine:
    """The engine on the `mcp-server` of one Codex executable. Nothing happens before the first call."""
    return RelayEngine(
        mcp_server(codex, environment),
        home=Path(codex_home(os.environ if environment is None else environment)),
        diagnose=lambda: check_has_mcp_server(binary.probe(codex), codex.path),
    )


def mcp_server(codex: Binary, environment: Mapping[str, str] | None = None) -> Connect:
    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        try:
            return await Child.spawn(
                [codex.path, "mcp-server"],
                on_stdout=on_bytes,
                on_end=on_end,
                env=child_environment(os.environ if environment is None else environment),
            )
        except OSError as problem:
            raise binary.cannot_run(codex.path, problem) from problem

    return connect


def check_has_mcp_server(version: tuple[int, ...], path: str) -> None:
    binary.check_age(version, path)
    if version > LAST:
        raise BinaryError(
            f"Codex {binary.spell(version)} at {path} has no mcp-server; {binary.spell(LAST)} was the last"
            " that had one: leave out --backend mcp-server, or name a Codex up to"
            f" {binary.spell(LAST)} with --codex-bin."
        )
