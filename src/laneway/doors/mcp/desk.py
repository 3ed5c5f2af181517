"""`codex` and `codex-reply` with names: sessions that are somebody, and can be had back.

Serves the seeds' session tools on `Colleagues`. Owns the run behind every waiting call; what a
tool looks like is in `offers`, how a thread is started in `presets`, what an error is called in
`codes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from laneway.base.errors import (
    ConfigRefused,
    EngineRefused,
    LanewayError,
    RemoteError,
    SessionClosed,
    SessionUnknown,
)
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.model import Question
from laneway.core.opening import Opening
from laneway.core.ports import Clock, TextPart, TurnSpec
from laneway.doors.mcp import answers, elicitation
from laneway.doors.mcp import arguments as check
from laneway.doors.mcp.codes import INVALID_SESSION_PARAMS, SESSION_CLOSED, proxy_error, wire_error
from laneway.doors.mcp.events import Script, Teller
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.presets import (
    House,
    changes_of,
    check_folder,
    expanded,
    folder_of,
    left_out,
    read_text,
    spec_of,
)
from laneway.doors.mcp.runs import InputRequired, Parking, Run
from laneway.doors.mcp.server import INVALID_PARAMS, Call
from laneway.doors.mcp.unattended import OnDecision, Unattended, UnattendedQuestions

T = TypeVar("T")

GO_ON = "Go on where you left off."
"""What a session is told that is resumed without a word."""


class Desk:
    def __init__(
        self,
        colleagues: Colleagues,
        clock: Clock,
        house: House,
        names: Names,
        script: Callable[[], Script],
        *,
        unattended: Unattended = "decline",
        resume: str | None = None,
        on_auto_mail: Callable[[str, bool], None] | None = None,
    ) -> None:
        """`on_auto_mail` is told when a caller says whether mail may start turns of a session."""
        self._colleagues = colleagues
        self._clock = clock
        self._house = house
        self._names = names
        self._script = script
        self._unattended: Unattended = unattended
        self._resume = resume
        """The session that the first call goes on with, if it names none."""
        self._on_auto_mail = on_auto_mail
        self._parking = Parking(clock)
        self._tellers: dict[str, Teller] = {}
        self._to_tell: dict[str, tuple[str, ...]] = {}
        """By session, what whoever resumed it should know beside its next answer."""

    # ── codex, codex-reply ─────────────────────────────────────────────────

    async def codex(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """A new session, or one that is had back; then its turn."""
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
        auto_mail, arguments = self._auto_mail(arguments)
        wanted = self._checked_codex(arguments)
        agent_id = wanted.pop(self._names.agent_id, None)
        if agent_id is None and "identity" not in wanted:
            agent_id = self._resume
        prompt, source = await self._prompt(wanted)
        if agent_id is not None:
            colleague = await self._had_back(call, agent_id, wanted)
            self._resume = None  # only now: one that could not be had back yet is still meant
            self._switch(colleague, auto_mail)
            return await self._run(call, colleague, prompt or GO_ON, "codex")
        opening = Opening(
            spec=await self._asked_for(spec_of, wanted),
            identity=wanted.get("identity"),
            tag=wanted.get("tag"),
            role=wanted.get("role") or self._house.role,
            agent_name=source.stem if source else None,
            agent_source=str(source) if source else None,
        )
        teller = self._teller(call)
        colleague = await self._worded(self._colleagues.open(call.principal, opening, readers=(teller,)))
        self._switch(colleague, auto_mail)
        try:
            return await self._run(call, colleague, prompt or "", "codex", teller)
        except RemoteError as refused:
            if isinstance(refused.__cause__, EngineRefused):
                # Its first turn never began: the caller has no session, so nothing stays bound.
                await self._worded(self._colleagues.close(call.principal, agent_id=colleague.agent_id))
            raise

    async def reply(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """The next turn of a session, by its id or its thread's."""
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
        auto_mail, arguments = self._auto_mail(arguments)
        try:
            wanted = check.of_reply(arguments, also=(self._names.agent_id,))
        except check.Refused as problem:
            raise _invalid(problem) from problem
        agent_id = wanted.get(self._names.agent_id)
        given = wanted.get("threadId", wanted.get("conversationId"))
        if agent_id is None and given is None:
            raise proxy_error(
                INVALID_SESSION_PARAMS, f"codex-reply needs {self._names.agent_id} or threadId."
            )
        colleague = await self._worded(self._live_again(call, agent_id, given))
        self._switch(colleague, auto_mail)
        return await self._run(call, colleague, wanted["prompt"], "codex-reply")

    def _auto_mail(self, arguments: dict[str, Any]) -> tuple[bool | None, dict[str, Any]]:
        """Whether mail may start turns, if the caller says so; and the other arguments."""
        if self._on_auto_mail is None or arguments.get("auto_mail") is None:
            return None, arguments
        if not isinstance(arguments["auto_mail"], bool):
            raise _invalid("`auto_mail` must be a boolean")
        return arguments["auto_mail"], {k: v for k, v in arguments.items() if k != "auto_mail"}

    def _switch(self, colleague: Colleague, auto_mail: bool | None) -> None:
        if auto_mail is not None and self._on_auto_mail is not None:
            self._on_auto_mail(colleague.agent_id, auto_mail)

    def _checked_codex(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """By shape (-32602), then by sense (-32007)."""
        also = ("identity", "agent_file", self._names.agent_id, "role", "tag")
        needs_no_prompt = any(arguments.get(name) is not None for name in ("agent_file", also[2]))
        try:
            for name in also:
                if arguments.get(name) is not None and not isinstance(arguments[name], str):
                    raise check.Refused(f"`{name}` must be a string")
            wanted = check.of_codex(arguments, also=(*also, "prompt") if needs_no_prompt else also)
            if not isinstance(wanted.get("prompt", ""), str):
                raise check.Refused("`prompt` must be a string")
        except check.Refused as problem:
            raise _invalid(problem) from problem
        if "agent_file" in wanted and "prompt" in wanted:
            raise proxy_error(INVALID_SESSION_PARAMS, "Give agent_file or prompt, not both.")
        if "agent_file" in wanted and self._names.agent_id in wanted:
            raise proxy_error(INVALID_SESSION_PARAMS, f"Give agent_file or {self._names.agent_id}, not both.")
        if "cwd" in wanted:
            check_folder(folder_of(self._house, wanted))
        return wanted

    async def _prompt(self, wanted: dict[str, Any]) -> tuple[str | None, Path | None]:
        """The words of the first turn, and the file that they come from."""
        if "agent_file" not in wanted:
            return wanted.get("prompt"), None
        folder = folder_of(self._house, wanted) if "cwd" in wanted else self._house.here
        path = folder / expanded(wanted["agent_file"])
        return await asyncio.to_thread(read_text, path, "agent file"), path

    async def _had_back(self, call: Call, agent_id: str, wanted: dict[str, Any]) -> Colleague:
        record = await self._worded(self._colleagues.lookup(agent_id=agent_id))
        identity = wanted.get("identity", record.identity)
        if record.identity != identity:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Session {agent_id} is {record.identity}, not {identity}.",
                identity=record.identity,
            )
        changes = await self._asked_for(changes_of, wanted)
        colleague = await self._worded(self._resumed(call, agent_id=agent_id, changes=changes))
        different = [
            name for name, value in changes.items() if getattr(colleague.session.spec, name) != value
        ]
        if different:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Session {agent_id} is at work as it is; to change {', '.join(sorted(different))}, "
                f"close it and resume it.",
            )
        return colleague

    async def _live_again(self, call: Call, agent_id: str | None, thread_id: str | None) -> Colleague:
        """A live session, or one whose process has gone; one that was closed must be asked for by `codex`."""
        if thread_id is not None and agent_id is None:
            try:
                thread_id = check.thread_id(thread_id)
            except check.Refused as problem:
                raise SessionUnknown(thread_id) from problem
        else:
            thread_id = None
        try:
            return self._colleagues.find(call.principal, agent_id=agent_id, thread_id=thread_id)
        except SessionUnknown:
            record = await self._colleagues.lookup(agent_id=agent_id, thread_id=thread_id)
        if record.status == "closed":
            raise SessionClosed(
                f"Session {record.agent_id} ({record.identity}) is closed. "
                f"Call codex with its {self._names.agent_id} to resume it."
            )
        return await self._resumed(call, agent_id=agent_id, thread_id=thread_id)

    async def _resumed(
        self,
        call: Call,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        changes: dict[str, Any] | None = None,
    ) -> Colleague:
        teller = self._teller(call)
        changes = dict(changes or {})
        if self._house.is_read_only:
            changes["sandbox"] = "read-only"  # whatever it was allowed before
        colleague = await self._colleagues.resume(
            call.principal, agent_id=agent_id, thread_id=thread_id, changes=changes, readers=(teller,)
        )
        known = self._tellers.get(colleague.agent_id)
        if known is None or not colleague.session.has_reader(known):
            if not colleague.session.has_reader(teller):
                colleague.session.attach(teller)  # whoever resumed it for us has gone away
            self._tellers[colleague.agent_id] = teller
            self._to_tell[colleague.agent_id] = left_out(self._house, colleague.record.config)
        return colleague

    def _teller(self, call: Call) -> Teller:
        return Teller(call.line, self._script(), UnattendedQuestions(call, self._unattended))

    async def _asked_for(self, read: Callable[[House, dict[str, Any]], T], wanted: dict[str, Any]) -> T:
        try:
            return await asyncio.to_thread(read, self._house, wanted)
        except ConfigRefused as refused:
            raise wire_error(refused, self._names) from refused

    async def _worded(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except LanewayError as error:
            raise wire_error(error, self._names) from error

    # ── turns ──────────────────────────────────────────────────────────────

    async def _run(
        self, call: Call, colleague: Colleague, prompt: str, source: str, teller: Teller | None = None
    ) -> dict[str, Any]:
        is_new = teller is not None
        if teller is not None:
            self._tellers = {key: told for key, told in self._tellers.items() if not told.is_closed}
            self._tellers[colleague.agent_id] = teller
        teller = self._tellers[colleague.agent_id]
        spec = TurnSpec(parts=(TextPart(prompt),))
        session, marks = colleague.session, self._names.told(colleague.agent_id)
        teller.unattended.bind(session, marks, self._noting(colleague, ""))
        try:
            turn = self._colleagues.say(colleague, spec, source=source, request_id=call.id_text, events=False)
        except LanewayError as error:
            teller.open(session.info, marks, None, is_new=is_new)  # the session is there all the same
            raise wire_error(error, self._names, **marks) from error
        run = Run(
            call,
            session,
            turn,
            teller,
            self._clock,
            unattended=self._unattended,
            marks=marks,
            on_decision=self._noting(colleague, call.id_text),
        )
        run.notes += self._to_tell.pop(colleague.agent_id, ())
        teller.open(session.info, marks, run, is_new=is_new)
        return await self._outcome(colleague, run)

    def _noting(self, colleague: Colleague, request_id: str) -> OnDecision:
        """Keeps what was decided for the audit log."""

        def note(question: Question, how: str) -> None:
            self._colleagues.note(
                "approval",
                colleague,
                message_summary=elicitation.wording(question),
                turn_id=question.turn_id or "",
                request_id=request_id,
                outcome=how,
            )

        return note

    async def _go_on(self, call: Call) -> dict[str, Any]:
        """The client is back with what it was asked for."""
        run = self._parking.take(call.principal, call.params.get("requestState"))
        run.attend(call)
        replies = call.params.get("inputResponses")
        await run.take(replies if isinstance(replies, dict) else {})
        colleague = self._of(run)
        return await self._outcome(colleague, run)

    def _of(self, run: Run) -> Colleague:
        try:
            return self._colleagues.find(run.principal, agent_id=run.session.agent_id)
        except SessionUnknown as gone:
            raise proxy_error(SESSION_CLOSED, f"Session {run.session.agent_id} is closed.") from gone

    async def _outcome(self, colleague: Colleague, run: Run) -> dict[str, Any]:
        try:
            outcome = await run.wait()
        except LanewayError as error:
            raise wire_error(error, self._names, **self._names.told(colleague.agent_id)) from error
        if isinstance(outcome, InputRequired):
            state = self._parking.park(run)
            if outcome.is_parked:
                return answers.parked(self._names, colleague, outcome.questions[0])
            asked = run.inputs(outcome)
            return {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        stopped = answers.stopped(self._names, colleague, outcome, run.partial)
        if stopped is not None:
            raise stopped
        return answers.result(self._names, colleague, outcome, run.notes)

    # ── agent_answer ───────────────────────────────────────────────────────

    async def answer(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Decide a parked question, then wait for the turn as the call did that left it."""
        question_id, action = arguments.get("question_id"), arguments.get("action")
        if not isinstance(question_id, str) or action not in ("accept", "decline", "cancel"):
            raise _invalid("question_id and action (accept, decline or cancel) are needed")
        run = self._parking.by_question(call.principal, question_id)
        if run is None:
            return await self._answer_unattended(call, question_id, arguments)
        run.attend(call)
        question = run.question(question_id)
        if question is not None:  # else it was too late, and the result says what became of it
            await self._worded(run.decide(question_id, answers.decided(question, arguments)))
        return await self._outcome(self._of(run), run)

    async def _answer_unattended(
        self, call: Call, question_id: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Decide a question of a turn that no call waits for: there is no result to come back with."""
        for colleague, question in self._parked(call.principal):
            if question.question_id == question_id:
                unattended = self._tellers[colleague.agent_id].unattended
                unattended.attend(call)
                await self._worded(unattended.decide(question_id, answers.decided(question, arguments)))
                return answers.answered(self._names, colleague)
        raise proxy_error(
            INVALID_SESSION_PARAMS, f"Nobody waits for an answer to {question_id}.", question_id=question_id
        )

    def _parked(self, principal: str) -> list[tuple[Colleague, Question]]:
        """Of the principal's sessions, what waits outside of any call."""
        return [
            (colleague, question)
            for colleague in self._colleagues.live(principal)
            if colleague.agent_id in self._tellers
            for question in self._tellers[colleague.agent_id].unattended.parked
        ]

    def status(self, principal: str) -> dict[str, Any]:
        """For `agent_status`: the questions that `agent_answer` can decide, if there are any."""
        rows = [
            {**self._names.told(colleague.agent_id), "question": answers.told(question)}
            for colleague, question in self._parked(principal)
        ]
        return {"questions": rows} if rows else {}


def _invalid(problem: object) -> LanewayError:
    return proxy_error(INVALID_PARAMS, f"Invalid arguments: {problem}")
