"""The page of this process: its address and token from the settings, its parts, and the platform `web`.

Here the chat and the other parts are joined to the page; none of them knows another. What is printed at
the start, one line, is the only place where a token that was made for this run can be read.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TypeAlias

from laneway.base.paths import state_home
from laneway.base.settings import Settings
from laneway.doors.console.page_server import serve_page
from laneway.doors.gate import is_loopback, new_token
from laneway.doors.page_parts import Announce, PagePart

UPLOADS = "uploads"
"""The folder of files that people put into conversations, below the state folder."""

FurtherParts: TypeAlias = Callable[[], AbstractAsyncContextManager[Sequence[PagePart]]]
"""Opens parts that live as long as the page is served."""

log = logging.getLogger(__name__)


class PageServer:
    """A `PageHost`: serves the parts that it is given, and those that every page has."""

    def __init__(
        self,
        settings: Settings,
        further: FurtherParts | None = None,
        *,
        announce: Announce | None = None,
        port: int | None = None,
    ) -> None:
        """`further` parts come after those that `serve` is given. `port`: instead of the setting."""
        self._settings = settings
        self._further = further
        self._announce = announce or print_address
        self._port = port

    async def serve(self, parts: Sequence[PagePart]) -> None:
        settings = self._settings
        if not is_loopback(settings.page_host) and settings.page_remote:
            log.warning(
                "the page can be reached from other machines at %s: anyone who has its token can run "
                "commands here, and without TLS in front of it the token can be read on the way (it answers "
                "to this address, and to the names in page.names)",
                settings.page_host,
            )
        async with AsyncExitStack() as stack:
            further = await stack.enter_async_context(self._further()) if self._further else ()
            await serve_page(
                [*parts, *further],
                token=settings.page_token or new_token(),
                on_ready=self._announce,
                host=settings.page_host,
                port=settings.page_port if self._port is None else self._port,
                may_leave_machine=settings.page_remote,
                hosts=settings.page_names,
            )


def print_address(address: str) -> None:
    """To standard error: standard output may be a terminal chat, or a pipe."""
    print(f"laneway: the page is at {address}", file=sys.stderr, flush=True)  # noqa: T201


def uploads_folder() -> Path:
    return state_home() / UPLOADS
