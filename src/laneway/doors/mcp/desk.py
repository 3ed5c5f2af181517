"""`codex` and `codex-reply` with names: sessions that are somebody, and can be had back.

Serves the seeds' session tools on `Colleagues`. Owns the run behind every waiting call; what a
tool looks like is in `offers`, how a thread is started in `presets`, what an error is called in
`codes`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import LanewayError, SessionClosed, SessionUnknown
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.model import DECLINE, Answer, Question
from laneway.core.opening import Opening
from laneway.core.ports import Clock, TextPart, TurnSpec
from laneway.core.turn import TurnResult
from laneway.doors.mcp import arguments as check
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.codes import (
    BUDGET_SPENT,
    CHILD_PROCESS_DEAD,
    INVALID_SESSION_PARAMS,
    REQUEST_TIMEOUT,
    SESSION_CLOSED,
    proxy_error,
    wire_error,
)
from laneway.doors.mcp.events import Script, Teller
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.presets import House, folder_of, read_text, spec_of
from laneway.doors.mcp.runs import InputRequired, Parking, Run, Unattended
from laneway.doors.mcp.server import INVALID_PARAMS, Call

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
    ) -> None:
        self._colleagues = colleagues
        self._clock = clock
        self._house = house
        self._names = names
        self._script = script
        self._unattended: Unattended = unattended
        self._resume = resume
        """The session that the first call goes on with, if it names none."""
        self._parking = Parking(clock)
        self._tellers: dict[str, Teller] = {}

    # ── codex, codex-reply ─────────────────────────────────────────────────

    async def codex(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """A new session, or one that is had back; then its turn."""
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
        wanted = self._checked_codex(arguments)
        agent_id = wanted.pop(self._names.agent_id, None)
        if agent_id is None and self._resume and "identity" not in wanted:
            agent_id, self._resume = self._resume, None
        prompt, source = self._prompt(wanted, agent_id)
        if agent_id is not None:
            colleague = await self._had_back(call, agent_id, wanted.get("identity"))
            return await self._run(call, colleague, prompt or GO_ON, "codex")
        opening = Opening(
            spec=spec_of(self._house, wanted),
            identity=wanted.get("identity"),
            tag=wanted.get("tag"),
            role=wanted.get("role") or self._house.role,
            agent_name=source.stem if source else None,
            agent_source=str(source) if source else None,
        )
        teller = Teller(call.line, self._script())
        colleague = await self._worded(self._colleagues.open(call.principal, opening, readers=(teller,)))
        return await self._run(call, colleague, prompt or "", "codex", teller)

    async def reply(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """The next turn of a session, by its id or its thread's."""
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
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
        return await self._run(call, colleague, wanted["prompt"], "codex-reply")

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
        return wanted

    def _prompt(self, wanted: dict[str, Any], agent_id: str | None) -> tuple[str | None, Path | None]:
        """The words of the first turn, and the file that they come from."""
        if "agent_file" not in wanted:
            return wanted.get("prompt"), None
        folder = folder_of(self._house, wanted) if "cwd" in wanted else self._house.here
        path = folder / Path(wanted["agent_file"]).expanduser()
        return read_text(path, "agent file"), path

    async def _had_back(self, call: Call, agent_id: str, identity: str | None) -> Colleague:
        if identity is not None:
            record = await self._worded(self._colleagues.lookup(agent_id=agent_id))
            if record.identity != identity:
                raise proxy_error(
                    INVALID_SESSION_PARAMS,
                    f"Session {agent_id} is {record.identity}, not {identity}.",
                    identity=record.identity,
                )
        return await self._worded(self._resumed(call, agent_id=agent_id))

    async def _live_again(self, call: Call, agent_id: str | None, thread_id: str | None) -> Colleague:
        """A live session, or one whose process has gone; one that was closed must be asked for by `codex`."""
        if thread_id is not None and agent_id is None:
            try:
                thread_id = check.thread_id(thread_id)
            except check.Refused as problem:
                raise SessionUnknown(thread_id) from problem
            selector = {"thread_id": thread_id}
        else:
            selector = {"agent_id": agent_id or ""}
        try:
            return self._colleagues.find(call.principal, **selector)
        except SessionUnknown:
            record = await self._colleagues.lookup(**selector)
        if record.status == "closed":
            raise SessionClosed(
                f"Session {record.agent_id} ({record.identity}) is closed. "
                f"Call codex with its {self._names.agent_id} to resume it."
            )
        return await self._resumed(call, **selector)

    async def _resumed(
        self, call: Call, *, agent_id: str | None = None, thread_id: str | None = None
    ) -> Colleague:
        teller = Teller(call.line, self._script())
        colleague = await self._colleagues.resume(
            call.principal, agent_id=agent_id, thread_id=thread_id, readers=(teller,)
        )
        known = self._tellers.get(colleague.agent_id)
        if known is None or known.is_closed:
            self._tellers[colleague.agent_id] = teller
        return colleague

    async def _worded(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except LanewayError as error:
            raise wire_error(error) from error

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
        try:
            turn = self._colleagues.say(colleague, spec, source=source, request_id=call.id_text, events=False)
        except LanewayError as error:
            raise wire_error(error, **self._names.told(colleague.agent_id)) from error
        run = Run(
            call,
            colleague.session,
            turn,
            teller,
            self._clock,
            unattended=self._unattended,
            marks=self._names.told(colleague.agent_id),
            on_decision=lambda question, how: self._colleagues.note(
                "approval",
                colleague,
                message_summary=elicitation.wording(question),
                turn_id=question.turn_id or "",
                request_id=call.id_text,
                outcome=how,
            ),
        )
        teller.open(colleague.session.info, self._names.told(colleague.agent_id), run, is_new=is_new)
        return await self._outcome(call, colleague, run)

    async def _go_on(self, call: Call) -> dict[str, Any]:
        """The client is back with what it was asked for."""
        run = self._parking.take(call.principal, call.params.get("requestState"))
        run.attend(call)
        replies = call.params.get("inputResponses")
        await run.take(replies if isinstance(replies, dict) else {})
        colleague = self._of(run)
        return await self._outcome(call, colleague, run)

    def _of(self, run: Run) -> Colleague:
        try:
            return self._colleagues.find(run.principal, agent_id=run.session.agent_id)
        except SessionUnknown as gone:
            raise proxy_error(SESSION_CLOSED, f"Session {run.session.agent_id} is closed.") from gone

    async def _outcome(self, call: Call, colleague: Colleague, run: Run) -> dict[str, Any]:
        try:
            outcome = await run.wait()
        except LanewayError as error:
            raise wire_error(error, **self._names.told(colleague.agent_id)) from error
        if isinstance(outcome, InputRequired):
            return self._required(colleague, run, outcome)
        self._raise_if_stopped(colleague, run, outcome)
        return self._result(colleague, run, outcome)

    def _required(self, colleague: Colleague, run: Run, required: InputRequired) -> dict[str, Any]:
        state = self._parking.park(run)
        if not required.is_parked:
            return {
                "resultType": "input_required",
                "inputRequests": run.inputs(required),
                "requestState": state,
            }
        question = required.questions[0]
        text = (
            f"Codex waits for a decision: {elicitation.wording(question)}\n"
            f"Answer it with {self._names.answer} (question_id {question.question_id})."
        )
        shown = {
            "status": "input_required",
            "threadId": colleague.thread_id,
            "content": text,
            **self._names.told(colleague.agent_id),
            "question": question_told(question),
        }
        return {"content": [{"type": "text", "text": text}], "structuredContent": shown}

    def _raise_if_stopped(self, colleague: Colleague, run: Run, outcome: TurnResult) -> None:
        """What ended a turn from outside is an error of the call, not an answer of the tool."""
        who = f"Session {colleague.agent_id} ({colleague.identity})"
        facts = {
            **self._names.told(colleague.agent_id),
            "threadId": colleague.thread_id,
            "partial": outcome.text or run.partial,
        }
        if outcome.failure is not None and outcome.failure.kind == "engine_lost":
            how = colleague.session.lost_how or outcome.failure.message
            raise proxy_error(
                CHILD_PROCESS_DEAD,
                f"{outcome.failure.message}. Reconnect to this MCP server to start Codex again; "
                f"{who} can be resumed.",
                exit=how,
                **facts,
            )
        match outcome.stopped_by:
            case "timeout":
                raise proxy_error(
                    REQUEST_TIMEOUT,
                    f"{who} did not finish in time; the turn was stopped and the session can be used. "
                    f"So far: {facts['partial'][:2000] or 'nothing'}",
                    **facts,
                )
            case "close":
                raise proxy_error(SESSION_CLOSED, f"{who} was closed during the turn.", **facts)
            case "budget":
                raise proxy_error(BUDGET_SPENT, f"{who} has spent its budget; the turn was stopped.", **facts)

    def _result(self, colleague: Colleague, run: Run, outcome: TurnResult) -> dict[str, Any]:
        text, is_error = outcome.text, outcome.status != "completed"
        if is_error:
            why = outcome.failure.message if outcome.failure else "the turn was interrupted"
            text = f"{why} ({self._names.agent_id} {colleague.agent_id})"
        text = "\n\n".join((text, *run.notes))
        usage = colleague.session.usage
        shown: dict[str, Any] = {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {
                "threadId": colleague.thread_id,
                "content": text,
                **self._names.told(colleague.agent_id),
                "identity": colleague.identity,
            },
            "_meta": {
                **self._names.told(colleague.agent_id),
                "turns": colleague.turns,
                "usage": msgspec.to_builtins(usage.total) if usage else None,
                "droppedEvents": colleague.session.lost_events,
            },
        }
        return {**shown, "isError": True} if is_error else shown

    # ── agent_answer ───────────────────────────────────────────────────────

    async def answer(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Decide a parked question, then wait for the turn as the call did that left it."""
        question_id, action = arguments.get("question_id"), arguments.get("action")
        if not isinstance(question_id, str) or action not in ("accept", "decline", "cancel"):
            raise _invalid("question_id and action (accept, decline or cancel) are needed")
        run = self._parking.by_question(call.principal, question_id)
        if run is None:
            raise proxy_error(
                INVALID_SESSION_PARAMS,
                f"Nobody waits for an answer to {question_id}.",
                question_id=question_id,
            )
        run.attend(call)
        question = next(q for q in run.open_questions if q.question_id == question_id)
        decided = elicitation.answer(question, {"action": action, "content": arguments.get("content")})
        await self._worded(run.decide(question_id, decided or stop(question)))
        return await self._outcome(call, self._of(run), run)


def stop(question: Question) -> Answer:
    """Decline and end the turn, where that is offered."""
    ending = next((c for c in question.choices if c.grants == "stop"), None)
    return Answer(choice_id=ending.choice_id) if ending else DECLINE


def question_told(question: Question) -> dict[str, Any]:
    """A question for somebody who reads JSON."""
    told = {
        "question_id": question.question_id,
        "kind": question.kind,
        "message": elicitation.wording(question),
        "choices": [{"id": c.choice_id, "label": c.label} for c in question.choices],
    }
    fields = elicitation.form(question)
    return {**told, "form": fields} if fields.get("properties") else told


def _invalid(problem: object) -> LanewayError:
    return proxy_error(INVALID_PARAMS, f"Invalid arguments: {problem}")
