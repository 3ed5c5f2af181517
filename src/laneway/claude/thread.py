"""One Claude Code session behind the core's `Thread` port, with at most one process at a time.

Starts the process, lets it sleep, wakes it by resuming the session, and sends an input again that a
crash has lost. Its reader makes the events (`laneway.claude.reader`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import (
    EngineCannot,
    EngineClosed,
    EngineError,
    EngineLost,
    EngineRefused,
    EngineSilent,
    LanewayError,
    ThreadUnknown,
)
from laneway.claude.inputs import content_of, text_of
from laneway.claude.launching import USER_SOURCES, Begin, Launch, effort_of, launch_of
from laneway.claude.locks import OwnLock
from laneway.claude.process import ClaudeProcess
from laneway.claude.reader import ThreadReader
from laneway.claude.setup import ClaudeSetup
from laneway.claude.tool_server import ToolServer
from laneway.claude.transcript import Recorded, is_session_id
from laneway.claude.turns import Input, input_of
from laneway.core.model import (
    Answer,
    EngineGone,
    Event,
    Notice,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    Usage,
)
from laneway.core.ports import Host, Page, Part, ThreadInfo, ThreadSpec, TurnSpec
from laneway.core.tools import ToolResult

log = logging.getLogger(__name__)

T = TypeVar("T")


class ClaudeThread:
    """Made by `ClaudeEngine`, which also opens its first process."""

    def __init__(self, setup: ClaudeSetup, host: Host, spec: ThreadSpec, thread_id: str) -> None:
        self._setup = setup
        self._host = host
        self._spec = spec
        self._cwd = spec.cwd
        self._launch: Launch | None = None
        """What the running process was started with; none while there is none."""
        self._wanted = launch_of(spec)
        self._notice: Notice | None = None
        """What is said with the next turn."""
        self._process: ClaudeProcess | None = None
        self._asking: ClaudeProcess | None = None
        """The process that our answers go to: it asks for our tools before its handshake is done."""
        self._opening = asyncio.Lock()
        self._lock = OwnLock(setup.locks)
        self._loss: EngineLost | None = None
        self._resending: asyncio.Task[None] | None = None
        self._is_released = False
        self._sent_context: tuple[str, int] = ("", 0)
        """The context that the model has, and the number of compactions when it got it."""
        self._tools = ToolServer(spec.tools, self._run_tool, self._respond)
        self._info = ThreadInfo(thread_id=thread_id, cwd=str(spec.cwd))
        self._reader = ThreadReader(
            self._emit,
            thread_id,
            str(spec.cwd),
            Recorded(setup.transcripts, thread_id),
            self._tools,
            self._respond,
            self._refuse,
            self._on_end,
            self._on_session,
        )
        self._reader.is_ephemeral = spec.ephemeral or setup.writes_nothing
        self._has_history = False
        """Whether the model remembers anything of this session."""
        self._copy_of: str | None = None
        """The session that this one copies, until the model has answered: nothing is written before that."""

    @property
    def info(self) -> ThreadInfo:
        return self._info

    @property
    def thread_id(self) -> str:
        return self._info.thread_id

    @property
    def is_awake(self) -> bool:
        return self._process is not None and self._process.is_alive

    @property
    def is_idle(self) -> bool:
        return self._may_sleep and not self._opening.locked()

    @property
    def _may_sleep(self) -> bool:
        """Not if it is all in the process's memory, and would be lost with it."""
        return self.is_awake and not self._reader.is_busy and not self._is_volatile

    @property
    def _is_volatile(self) -> bool:
        return self._reader.is_ephemeral and self._has_history

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    # ── the process ────────────────────────────────────────────────────────

    async def open(self, begin: Begin, original_id: str | None = None) -> None:
        """Take the session's lock and start its first process."""
        await self._lock.take(self.thread_id)
        self._has_history, self._copy_of = begin != "start", original_id
        try:
            if begin == "resume":
                await self._setup.refuse_if_running(self.thread_id)
            async with self._opening:
                await self._start_process(await self._vetted(self._wanted), begin, original_id)
        except BaseException:
            await self.release()
            raise
        hello = self._process.hello if self._process is not None else {}
        self._info = msgspec.structs.replace(self._info, native={"account": hello.get("account")})

    async def _start_process(self, launch: Launch, begin: Begin, original_id: str | None = None) -> None:
        """Start a process for this session; under `_opening`."""
        process = self._asking = ClaudeProcess(self._reader)
        try:
            await self._setup.start(
                process, launch, begin, self.thread_id, original_id, self._cwd, self._lock.fds
            )
            self._refuse_if_over()
            await self._check_unchanged(launch)
        except BaseException as problem:
            await process.aclose()
            if isinstance(problem, EngineError):
                self._refuse_if_over()  # the better reason
            raise
        self._process, self._launch = process, launch
        if begin != "start":
            self._reader.recorded.skip()
        self._setup.awake.use(self)

    async def _vetted(self, launch: Launch) -> Launch:
        """With the settings that may be read now: what a repository brings may have changed."""
        sources, notice = await self._setup.sources_of(self._cwd, launch.folders)
        self._notice = notice or self._notice
        return msgspec.structs.replace(launch, sources=sources)

    async def _check_unchanged(self, launch: Launch) -> None:
        """A repository that changes between the look at it and the start has not been looked at."""
        if launch.sources != USER_SOURCES and not await self._setup.may_read(self._cwd, launch):
            raise EngineRefused(
                "the start", 0, "the settings of this folder have just changed", engine=CLAUDE
            )

    async def _awake(self, launch: Launch) -> ClaudeProcess:
        """The process of this session, with what the next turn needs."""
        async with self._opening:
            self._refuse_if_over()
            if self._process is not None and self._process.is_alive:
                if launch == msgspec.structs.replace(self._launch or launch, sources=launch.sources):
                    return self._process
                if self._reader.is_busy:
                    raise EngineCannot(
                        CLAUDE,
                        "change its model, effort or schema while something else runs in the session",
                        "Wait until that has ended.",
                    )
                if self._is_volatile:
                    raise EngineCannot(
                        CLAUDE,
                        "change its model, effort or schema in a session of which nothing is written down",
                        "Start another session.",
                    )
                await self._end_process()
            return await self._resume(await self._vetted(launch))

    async def _resume(self, launch: Launch) -> ClaudeProcess:
        """Start a process that is to be sent something at once; under `_opening`."""
        await self._setup.refuse_if_running(self.thread_id)
        await self._start_for_session(launch)
        assert self._process is not None
        if not self._process.is_alive:
            raise self._process.loss()  # it died behind its handshake, when nobody was to be told
        return self._process

    async def _start_for_session(self, launch: Launch) -> None:
        """Start a process for what there is of the session."""
        if self._setup.transcripts.has_messages(self.thread_id):
            try:
                await self._start_process(launch, "resume")
                return
            except ThreadUnknown:
                if self._has_history:
                    raise
                log.info("nothing of session %s was written before its process ended", self.thread_id)
        elif self._has_history and self._copy_of is None:
            raise ThreadUnknown(self.thread_id, engine=CLAUDE)  # its transcript was deleted
        if self._setup.transcripts.find(self.thread_id) is not None:
            await self._rename()  # Claude Code neither resumes an empty transcript nor starts it anew
        await self._start_process(launch, "start" if self._copy_of is None else "fork", self._copy_of)

    async def _rename(self) -> None:
        """Go on under another id."""
        new_id = str(uuid4())
        await self._lock.take(new_id)
        self._be(new_id)

    def _on_session(self, session_id: str) -> None:
        """Claude Code works in this session: after `/clear` it is another one."""
        if session_id == self.thread_id or not is_session_id(session_id):
            return
        self._lock.follow(session_id)
        self._be(session_id)
        self._has_history, self._copy_of, self._sent_context = False, None, ("", 0)
        text = f"{CLAUDE} began a new conversation: it remembers nothing of what was said before."
        self._host.on_event(Notice(level="info", message=text, turn_id=self._reader.translator.turn_id))

    def _be(self, new_id: str) -> None:
        """Be the session of this id from now on."""
        self._info = msgspec.structs.replace(self._info, thread_id=new_id)
        self._reader.thread_id = new_id
        self._reader.recorded = Recorded(self._setup.transcripts, new_id)
        self._host.on_event(ThreadKnown(thread_id=new_id))

    def _refuse_if_over(self) -> None:
        if self._loss is not None:
            raise self._loss
        if self._is_released or self._setup.is_closed:
            raise EngineClosed

    async def sleep(self) -> None:
        """End the process if it has nothing to do. The next turn starts another one."""
        async with self._opening:
            # Asked again: a turn may have come while this waited.
            if self._may_sleep:
                log.info("session %s sleeps", self.thread_id)
                await self._end_process()
            elif self.is_awake:
                self._setup.awake.use(self)

    async def _end_process(self) -> None:
        process, self._process, self._launch = self._process, None, None
        self._setup.awake.drop(self)
        self._tools.cancel_all()
        if process is not None:
            await process.aclose()

    async def release(self) -> None:
        """End the process, and let others have the session."""
        self._is_released = True
        if self._resending is not None:
            self._resending.cancel()
            await asyncio.gather(self._resending, return_exceptions=True)
        await self._end_process()
        if self._asking is not None:
            await self._asking.aclose()  # also one that is only being started
        await self._reader.aclose()
        await self._tools.aclose()
        await asyncio.to_thread(self._lock.release)
        self._setup.forget(self)

    # ── called by the core ─────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        is_new = (spec.context, self._reader.compactions) != self._sent_context
        given = input_of(ticket, spec, spec.context if is_new else "")
        wanted = self._wanted_for(spec)
        process = await self._awake(msgspec.structs.replace(wanted, output_schema=spec.output_schema))
        self._wanted = wanted
        if self._reader.translator.turn_id is not None:
            raise EngineRefused("the turn", 0, "a turn is already running on this thread", engine=CLAUDE)
        if spec.plan_mode is not None:
            mode = "plan" if spec.plan_mode.is_on else self._wanted.access.mode or "default"
            await process.control("set_permission_mode", mode=mode)
        self._reader.turns.expect(given)
        process.send_input(given.uuid, given.content)
        self._sent_context = (spec.context, self._reader.compactions)
        try:
            return await self._until(given.begun, given, "no turn began")
        except asyncio.CancelledError:
            self._take_back(given)
            raise

    def _wanted_for(self, spec: TurnSpec) -> Launch:
        """Model and effort stay for the turns after."""
        return msgspec.structs.replace(
            self._wanted,
            model=spec.model or self._wanted.model,
            effort=effort_of(spec.effort) or self._wanted.effort,
        )

    async def _until(self, done: asyncio.Future[T], given: Input, problem: str) -> T:
        """Wait for what Claude Code reports of an input; take it back if nothing comes."""
        take_s = self._setup.take_s
        try:
            async with asyncio.timeout(take_s):
                return await asyncio.shield(done)
        except TimeoutError:
            self._take_back(given)
            said = self._process.stderr_tail if self._process is not None else ""
            raise EngineSilent(f"{problem} within {take_s:g} s", said, engine=CLAUDE) from None

    def _take_back(self, given: Input) -> None:
        self._reader.turns.forget(given)
        if self._process is not None:
            self._process.take_back(given.uuid)

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        self._refuse_if_over()
        process = self._process
        if process is None or self._reader.translator.turn_id != turn_id:
            raise EngineRefused("the input", 0, f"turn {turn_id} does not run any more", engine=CLAUDE)
        given = Input(str(uuid4()), ticket, content_of(parts), text_of(parts), is_turn=False)
        self._reader.turns.expect(given)
        process.send_input(given.uuid, given.content)
        await self._until(given.taken, given, "the input was not taken")

    async def interrupt(self, turn_id: str) -> None:
        """Stop a turn, and take back what waits behind it, which Claude Code would go on with."""
        process, is_running = self._process, self._reader.translator.turn_id == turn_id
        if is_running and self._resending is not None and not self._resending.done():
            self._resending.cancel()  # it is not sent again, and the turn is lost
            await asyncio.gather(self._resending, return_exceptions=True)
            return
        if process is None or not is_running:
            raise EngineRefused("the interrupt", 0, f"turn {turn_id} does not run", engine=CLAUDE)
        if self._reader.turns.is_beginning_again:
            raise EngineRefused("the interrupt", 0, f"turn {turn_id} has yet to begin again", engine=CLAUDE)
        self._reader.translator.is_stopping = True
        await process.interrupt([given.uuid for given in self._reader.turns.waiting])

    def answer(self, question_id: str, answer: Answer) -> None:
        self._reader.questions.answer(question_id, answer, self._respond)

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        return await self._setup.history(self.thread_id, older, limit, oldest_first=oldest_first)

    # ── called by the reader ───────────────────────────────────────────────

    def _emit(self, event: Event) -> None:
        if type(event) in (TurnStarted, TurnDone):
            self._setup.awake.use(self)
        elif type(event) is Usage:
            self._has_history, self._copy_of = True, None  # the model has answered
        self._host.on_event(event)
        if type(event) is TurnStarted and self._notice is not None:
            notice, self._notice = self._notice, None
            self._host.on_event(msgspec.structs.replace(notice, turn_id=event.turn_id))

    async def _run_tool(self, name: str, arguments: Any) -> ToolResult:
        return await self._host.on_tool(name, arguments, self._reader.translator.turn_id or "")

    def _respond(self, request_id: str, response: dict[str, Any]) -> None:
        if self._asking is not None:
            self._asking.reply(request_id, response)

    def _refuse(self, request_id: str, problem: str) -> None:
        if self._asking is not None:
            self._asking.refuse(request_id, problem)

    def _on_end(self, how: str) -> None:
        """The process ended by itself."""
        process, launch = self._process, self._launch
        self._process = self._launch = None
        if process is None or launch is None:
            return  # it never began: whoever starts it gets the error
        self._setup.awake.drop(self)
        self._tools.cancel_all()
        self._reader.background = ()
        loss = process.loss()
        lost = self._reader.turns.unaccepted
        asked = [given for given in lost if given.is_turn]
        running = self._reader.translator
        may_resend = not running.has_acted and not running.is_stopping
        if len(asked) == 1 and asked[0].resent == 0 and may_resend:
            # Nothing of it is written, nothing was done for it, and it is still wanted: it can be sent
            # once more, with what was added to it.
            self._resending = asyncio.get_running_loop().create_task(self._resend(lost, launch, loss))
        else:
            self._lose(loss)

    async def _resend(self, lost: list[Input], launch: Launch, loss: EngineLost) -> None:
        self._reader.questions.withdraw_all()
        try:
            async with self._opening:
                process = await self._resume(await self._vetted(launch))
                for given in lost:
                    given.resent += 1
                    given.is_beginning_again = given.state == "started"
                    process.send_input(given.uuid, given.content)
        except asyncio.CancelledError:
            if self._is_released:
                raise
            log.info("an input was not sent again: its turn was interrupted")
            self._lose(loss)
            return
        except (LanewayError, OSError) as problem:
            log.info("an input was not sent again: %s", problem)
            self._lose(loss)
            return
        text = f"{CLAUDE} ended ({loss.how}) before it had written down the prompt, which was sent again."
        self._host.on_event(Notice(level="warning", message=text, turn_id=lost[0].turn_id))

    def _lose(self, loss: EngineLost) -> None:
        self._loss = loss
        self._reader.lost(loss)
        self._host.on_event(EngineGone(how=loss.how, last_words=loss.last_words))
        self._setup.forget(self)
        self._lock.release()
