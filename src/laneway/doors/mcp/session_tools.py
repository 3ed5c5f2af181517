"""The MCP tools `codex`, `codex-reply` and `agent_answer`: turns in named sessions that can be resumed.

Works on `NamedSessions` and owns the `ClientRun` behind every waiting call. What a tool looks like to
clients is in `definitions`, how a thread is started in `presets`, the error codes are in `codes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from laneway.base.engines import BACKENDS
from laneway.base.errors import (
    ConfigRefused,
    EngineCannot,
    EngineRefused,
    LanewayError,
    RemoteError,
    SessionClosed,
    SessionUnknown,
)
from laneway.core.model import Question
from laneway.core.named.opening import Opening
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import Clock, Engine, TextPart, ThreadSpec, TurnSpec
from laneway.doors.mcp import answers, elicitation, engine_limits
from laneway.doors.mcp import arguments as check
from laneway.doors.mcp.codes import INVALID_SESSION_PARAMS, SESSION_CLOSED, proxy_error, wire_error
from laneway.doors.mcp.events import EventForwarder, Script
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.presets import (
    SessionDefaults,
    changes_of,
    check_folder,
    expanded,
    folder_of,
    left_out_notes,
    read_text,
    spec_of,
)
from laneway.doors.mcp.runs import ClientRun, InputRequired, Parking
from laneway.doors.mcp.server import Call
from laneway.doors.mcp.unattended import OnDecision, Unattended, UnattendedQuestions
from laneway.wire.messages import INVALID_PARAMS

T = TypeVar("T")
A = TypeVar("A", ThreadSpec, dict[str, Any])

GO_ON = "Go on where you left off."
"""The prompt of a session that is resumed without one."""


class SessionTools:
    """Handlers of the session tools, for all clients of a server: each principal has its own sessions."""

    def __init__(
        self,
        sessions: NamedSessions,
        clock: Clock,
        defaults: SessionDefaults,
        names: Names,
        script: Callable[[], Script],
        *,
        unattended: Unattended = "decline",
        resume: str | None = None,
        on_auto_mail: Callable[[str, bool], None] | None = None,
    ) -> None:
        """`on_auto_mail` is called when a caller decides whether mail may start turns of a session."""
        self._sessions = sessions
        self._clock = clock
        self._defaults = defaults
        self._names = names
        self._script = script
        self._unattended: Unattended = unattended
        self._resume_first = resume
        """The session that the first call continues, if it names none."""
        self._on_auto_mail = on_auto_mail
        self._parking = Parking(clock)
        self._forwarders: dict[str, EventForwarder] = {}
        self._pending_notes: dict[str, tuple[str, ...]] = {}
        """By session: notes to add to its next answer."""

    # ── codex, codex-reply ─────────────────────────────────────────────────

    async def codex(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Start a session, or resume one; then run its turn."""
        if call.params.get("requestState") is not None:
            return await self._continue_run(call)
        auto_mail, arguments = self._split_auto_mail(arguments)
        checked = self._checked_codex(arguments)
        agent_id = checked.pop(self._names.agent_id, None)
        if agent_id is None and "identity" not in checked:
            agent_id = self._resume_first
        prompt, source = await self._prompt(checked)
        if agent_id is not None:
            named = await self._resume_changed(call, agent_id, checked)
            self._resume_first = None  # only now: if it could not be resumed, the next call tries again
            self._set_auto_mail(named, auto_mail)
            return await self._run(call, named, prompt or GO_ON, "codex")
        engine = self._engine(checked.get("engine") or self._defaults.backend)
        opening = Opening(
            spec=await self._from_arguments(engine, spec_of, checked),
            identity=checked.get("identity"),
            tag=checked.get("tag"),
            role=checked.get("role") or self._defaults.role,
            agent_name=source.stem if source else None,
            agent_source=str(source) if source else None,
        )
        forwarder = self._new_forwarder(call)
        named = await self._with_wire_errors(
            self._sessions.open(call.principal, opening, readers=(forwarder,))
        )
        self._set_auto_mail(named, auto_mail)
        try:
            return await self._run(call, named, prompt or "", "codex", forwarder)
        except RemoteError as refused:
            if isinstance(refused.__cause__, EngineRefused):
                # Its first turn never began: the caller does not know the session, so its name is freed.
                await self._with_wire_errors(self._sessions.close(call.principal, agent_id=named.agent_id))
            raise

    async def reply(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run the next turn of a session, named by its id or its thread's."""
        if call.params.get("requestState") is not None:
            return await self._continue_run(call)
        auto_mail, arguments = self._split_auto_mail(arguments)
        try:
            checked = check.of_reply(arguments, also=(self._names.agent_id,))
        except check.BadArgument as problem:
            raise _invalid(problem) from problem
        agent_id = checked.get(self._names.agent_id)
        thread_id = checked.get("threadId", checked.get("conversationId"))
        if agent_id is None and thread_id is None:
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"codex-reply needs {self._names.agent_id} or threadId."
            )
        named = await self._with_wire_errors(self._live_or_resumed(call, agent_id, thread_id))
        self._set_auto_mail(named, auto_mail)
        return await self._run(call, named, checked["prompt"], "codex-reply")

    def _split_auto_mail(self, arguments: dict[str, Any]) -> tuple[bool | None, dict[str, Any]]:
        """Whether mail may start turns, if the caller says so; and the other arguments."""
        if self._on_auto_mail is None or arguments.get("auto_mail") is None:
            return None, arguments
        if not isinstance(arguments["auto_mail"], bool):
            raise _invalid("`auto_mail` must be a boolean")
        return arguments["auto_mail"], {k: v for k, v in arguments.items() if k != "auto_mail"}

    def _set_auto_mail(self, named: NamedSession, auto_mail: bool | None) -> None:
        if auto_mail is not None and self._on_auto_mail is not None:
            self._on_auto_mail(named.agent_id, auto_mail)

    def _checked_codex(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Checked for their types (-32602), then for whether they go together (-32007)."""
        also = ("identity", "agent_file", self._names.agent_id, "role", "tag", *self._engine_argument)
        needs_no_prompt = any(arguments.get(name) is not None for name in ("agent_file", also[2]))
        try:
            for name in also:
                if arguments.get(name) is not None and not isinstance(arguments[name], str):
                    raise check.BadArgument(f"`{name}` must be a string")
            checked = check.of_codex(arguments, also=(*also, "prompt") if needs_no_prompt else also)
            if not isinstance(checked.get("prompt", ""), str):
                raise check.BadArgument("`prompt` must be a string")
        except check.BadArgument as problem:
            raise _invalid(problem) from problem
        if "agent_file" in checked and "prompt" in checked:
            raise proxy_error(INVALID_SESSION_PARAMS, "Give agent_file or prompt, not both.")
        if "agent_file" in checked and self._names.agent_id in checked:
            raise proxy_error(INVALID_SESSION_PARAMS, f"Give agent_file or {self._names.agent_id}, not both.")
        if "cwd" in checked:
            check_folder(folder_of(self._defaults, checked))
        return checked

    @property
    def _engine_argument(self) -> tuple[str, ...]:
        """The name of the argument by which a call names its engine; none where there is only one."""
        return ("engine",) if len(self._sessions.hub.engines.backends) > 1 else ()

    async def _prompt(self, checked: dict[str, Any]) -> tuple[str | None, Path | None]:
        """The prompt of the first turn, and the agent file that it comes from, if any."""
        if "agent_file" not in checked:
            return checked.get("prompt"), None
        folder = folder_of(self._defaults, checked) if "cwd" in checked else self._defaults.base_dir
        path = folder / expanded(checked["agent_file"])
        return await asyncio.to_thread(read_text, path, "agent file"), path

    async def _resume_changed(self, call: Call, agent_id: str, checked: dict[str, Any]) -> NamedSession:
        record = await self._with_wire_errors(self._sessions.lookup(agent_id=agent_id))
        identity = checked.get("identity", record.identity)
        if record.identity != identity:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Session {agent_id} is {record.identity}, not {identity}.",
                identity=record.identity,
            )
        if checked.get("engine", record.backend) != record.backend:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Session {agent_id} runs on {BACKENDS.get(record.backend, record.backend)}: start another.",
                engine=record.backend,
            )
        changes = await self._from_arguments(self._engine(record.backend), changes_of, checked)
        named = await self._with_wire_errors(self._resume_session(call, agent_id=agent_id, changes=changes))
        different = [name for name, value in changes.items() if getattr(named.session.spec, name) != value]
        if different:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Session {agent_id} is at work as it is; to change {', '.join(sorted(different))}, "
                f"close it and resume it.",
            )
        return named

    async def _live_or_resumed(self, call: Call, agent_id: str | None, thread_id: str | None) -> NamedSession:
        """The live session, resumed if its process has gone; a closed one must be resumed by `codex`."""
        if thread_id is not None and agent_id is None:
            try:
                thread_id = check.thread_id(thread_id)
            except check.BadArgument as problem:
                raise SessionUnknown(thread_id) from problem
        else:
            thread_id = None
        try:
            return self._sessions.find(call.principal, agent_id=agent_id, thread_id=thread_id)
        except SessionUnknown:
            record = await self._sessions.lookup(agent_id=agent_id, thread_id=thread_id)
        if record.status == "closed":
            raise SessionClosed(
                f"Session {record.agent_id} ({record.identity}) is closed. "
                f"Call codex with its {self._names.agent_id} to resume it."
            )
        return await self._resume_session(call, agent_id=agent_id, thread_id=thread_id)

    async def _resume_session(
        self,
        call: Call,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        changes: dict[str, Any] | None = None,
    ) -> NamedSession:
        forwarder = self._new_forwarder(call)
        changes = dict(changes or {})
        if self._defaults.is_read_only:
            changes["sandbox"] = "read-only"  # whatever it was allowed before
        named = await self._sessions.resume(
            call.principal, agent_id=agent_id, thread_id=thread_id, changes=changes, readers=(forwarder,)
        )
        known = self._forwarders.get(named.agent_id)
        if known is None or not named.session.has_reader(known):
            if not named.session.has_reader(forwarder):
                named.session.attach(forwarder)  # resumed for another call, which has gone away
            self._forwarders[named.agent_id] = forwarder
            self._pending_notes[named.agent_id] = left_out_notes(self._defaults, named.record.config)
        return named

    def _new_forwarder(self, call: Call) -> EventForwarder:
        return EventForwarder(call.channel, self._script(), UnattendedQuestions(call, self._unattended))

    def _engine(self, backend: str | None) -> Engine:
        try:
            return self._sessions.hub.engines.get(backend)
        except LanewayError as error:
            raise wire_error(error, self._names) from error

    async def _from_arguments(
        self, engine: Engine, read: Callable[[SessionDefaults, dict[str, Any]], A], checked: dict[str, Any]
    ) -> A:
        """A spec, or fields of one, from the arguments; refused where the engine cannot do that."""
        try:
            engine_limits.check(engine, checked)
            defaults = engine_limits.defaults_for(engine, self._defaults)
            result = await asyncio.to_thread(read, defaults, checked)
            engine_limits.check_access(engine, result)
            return result
        except (ConfigRefused, EngineCannot) as refused:
            raise wire_error(refused, self._names) from refused

    async def _with_wire_errors(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except LanewayError as error:
            raise wire_error(error, self._names) from error

    # ── turns ──────────────────────────────────────────────────────────────

    async def _run(
        self,
        call: Call,
        named: NamedSession,
        prompt: str,
        source: str,
        forwarder: EventForwarder | None = None,
    ) -> dict[str, Any]:
        is_new = forwarder is not None
        if forwarder is not None:
            self._forwarders = {key: known for key, known in self._forwarders.items() if not known.is_closed}
            self._forwarders[named.agent_id] = forwarder
        forwarder = self._forwarders[named.agent_id]
        spec = TurnSpec(parts=(TextPart(prompt),))
        session, id_fields = named.session, self._names.id_fields(named.agent_id)
        forwarder.unattended.bind(session, id_fields, self._decision_logger(named, ""))
        try:
            turn = self._sessions.say(named, spec, source=source, request_id=call.id_text, events=False)
        except LanewayError as error:
            # The session is open all the same.
            forwarder.open(session.info, id_fields, None, is_new=is_new, engine=session.engine.name)
            raise wire_error(error, self._names, **id_fields) from error
        run = ClientRun(
            call,
            session,
            turn,
            forwarder,
            self._clock,
            unattended=self._unattended,
            id_fields=id_fields,
            on_decision=self._decision_logger(named, call.id_text),
        )
        run.notes += self._pending_notes.pop(named.agent_id, ())
        forwarder.open(session.info, id_fields, run, is_new=is_new, engine=session.engine.name)
        return await self._outcome(named, run)

    def _decision_logger(self, named: NamedSession, request_id: str) -> OnDecision:
        """A callback that writes each decision to the audit log."""

        def note(question: Question, how: str) -> None:
            self._sessions.note(
                "approval",
                named,
                message_summary=elicitation.wording(question),
                turn_id=question.turn_id or "",
                request_id=request_id,
                outcome=how,
            )

        return note

    async def _continue_run(self, call: Call) -> dict[str, Any]:
        """A stateless client is back with the input that its last call asked for."""
        run = self._parking.take(call.principal, call.params.get("requestState"))
        run.attend(call)
        replies = call.params.get("inputResponses")
        await run.take_replies(replies if isinstance(replies, dict) else {})
        return await self._outcome(self._session_of(run), run)

    def _session_of(self, run: ClientRun) -> NamedSession:
        try:
            return self._sessions.find(run.principal, agent_id=run.session.agent_id)
        except SessionUnknown as gone:
            raise proxy_error(SESSION_CLOSED, f"Session {run.session.agent_id} is closed.") from gone

    async def _outcome(self, named: NamedSession, run: ClientRun) -> dict[str, Any]:
        try:
            outcome = await run.wait()
        except LanewayError as error:
            raise wire_error(error, self._names, **self._names.id_fields(named.agent_id)) from error
        if isinstance(outcome, InputRequired):
            state = self._parking.park(run)
            if outcome.is_parked:
                return answers.parked(self._names, named, outcome.questions[0])
            requests = run.inputs(outcome)
            return {"resultType": "input_required", "inputRequests": requests, "requestState": state}
        stopped = answers.stopped(self._names, named, outcome, run.partial)
        if stopped is not None:
            raise stopped
        return answers.result(self._names, named, outcome, run.notes)

    # ── agent_answer ───────────────────────────────────────────────────────

    async def answer(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Decide a parked question, then wait for its turn in place of the call that returned with it."""
        question_id, action = arguments.get("question_id"), arguments.get("action")
        if not isinstance(question_id, str) or action not in ("accept", "decline", "cancel"):
            raise _invalid("question_id and action (accept, decline or cancel) are needed")
        run = self._parking.by_question(call.principal, question_id)
        if run is None:
            return await self._answer_unattended(call, question_id, arguments)
        run.attend(call)
        question = run.question(question_id)
        if question is not None:  # else it was answered too late, and the result says how it ended
            await self._with_wire_errors(run.decide(question_id, answers.decided(question, arguments)))
        return await self._outcome(self._session_of(run), run)

    async def _answer_unattended(
        self, call: Call, question_id: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Decide a question of a turn that no call waits for: there is no turn's result to return."""
        for named, question in self._parked(call.principal):
            if question.question_id == question_id:
                unattended = self._forwarders[named.agent_id].unattended
                unattended.attend(call)
                await self._with_wire_errors(
                    unattended.decide(question_id, answers.decided(question, arguments))
                )
                return answers.answered(self._names, named)
        raise proxy_error(
            INVALID_SESSION_PARAMS, f"Nobody waits for an answer to {question_id}.", question_id=question_id
        )

    def _parked(self, principal: str) -> list[tuple[NamedSession, Question]]:
        """The principal's parked questions that belong to no waiting call, with their sessions."""
        return [
            (named, question)
            for named in self._sessions.live(principal)
            if named.agent_id in self._forwarders
            for question in self._forwarders[named.agent_id].unattended.parked
        ]

    def status(self, principal: str) -> dict[str, Any]:
        """For `agent_status`: the questions that `agent_answer` can decide, if there are any."""
        rows = [
            {**self._names.id_fields(named.agent_id), "question": answers.question_json(question)}
            for named, question in self._parked(principal)
        ]
        return {"questions": rows} if rows else {}


def _invalid(problem: object) -> LanewayError:
    return proxy_error(INVALID_PARAMS, f"Invalid arguments: {problem}")
