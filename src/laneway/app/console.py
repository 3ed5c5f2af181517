"""The console: the page with panels for live sessions, jobs, team mail and the checks of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.app.console_health import DoctorChecks
from laneway.app.console_jobs import ToolJobs
from laneway.app.console_mail import FileMail
from laneway.app.console_sessions import SocketSessions
from laneway.app.jobs_cli import command_jobs
from laneway.app.options import CodexChoice
from laneway.base.clock import LoopClock
from laneway.base.settings import Settings
from laneway.doors.console.page_server import serve_page
from laneway.doors.console.panels.health import HealthPart
from laneway.doors.console.panels.jobs import JobsPart
from laneway.doors.console.panels.mail import MailPart
from laneway.doors.console.panels.sessions import SessionsPart
from laneway.doors.gate import new_token
from laneway.doors.page_parts import PagePart
from laneway.mail.places import Places


@asynccontextmanager
async def console_parts(
    settings: Settings, choice: CodexChoice, *, cwd: Path
) -> AsyncIterator[tuple[PagePart, ...]]:
    """The parts of the page, while the block runs. Jobs are looked after meanwhile."""
    clock = LoopClock()
    async with command_jobs(settings, choice, cwd=cwd, may_lack_codex=True) as tools:
        yield (
            SessionsPart(SocketSessions(), clock),
            JobsPart(ToolJobs(tools), clock),
            MailPart(FileMail(settings, Places.of()), clock),
            HealthPart(DoctorChecks()),
        )


async def serve_console(
    settings: Settings,
    choice: CodexChoice,
    *,
    cwd: Path,
    port: int,
    on_ready: Callable[[str], None],
    further: Sequence[PagePart] = (),
) -> None:
    """Serve the page with the console's panels, and with further parts, until cancelled."""
    async with console_parts(settings, choice, cwd=cwd) as parts:
        await serve_page((*parts, *further), token=new_token(), on_ready=on_ready, port=port)
