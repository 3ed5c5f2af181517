"""One Codex thread behind the core's `Thread` port: turns, questions, tools, history.

Owns the translator and the open questions of its thread. Bound to one link for life: when the link
dies, the thread reports it once, and every later call raises the same error.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import EngineError, EngineLost, EngineRefused, QuestionGone, RemoteError
from laneway.base.ids import new_id
from laneway.codex import context, provider, questions, sandbox
from laneway.codex.link import Link, has_no_turns
from laneway.codex.releases import Releases
from laneway.codex.translate import DELTA_EVENTS, Translator, replay
from laneway.codex.turn_settings import turn_settings
from laneway.core.background import TaskSet
from laneway.core.model import (
    Answer,
    Asked,
    Compacted,
    EngineGone,
    Event,
    FromSubagent,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import Host, ImagePart, NativePart, Page, Part, TextPart, ThreadInfo, TurnSpec
from laneway.wire.peer import METHOD_NOT_FOUND, Raw

if TYPE_CHECKING:
    from laneway.codex.protocol.types import ThreadTurnsListParams, TurnStartParams, TurnSteerParams
    from laneway.core.offers import SpecialTurn

log = logging.getLogger(__name__)

TURN_START_S = 30.0
"""From Codex's answer to the start of the turn: milliseconds, unless it starts none."""


class _OpenQuestion(msgspec.Struct, frozen=True):
    request_id: bytes
    answer: asyncio.Future[Answer]


class CodexThread:
    def __init__(
        self,
        link: Link,
        host: Host,
        started: dict[str, Any],
        first_settings: dict[str, Any] | None = None,
        releases: Releases | None = None,
    ) -> None:
        """`first_settings` are sent with the first turn (see `laneway.codex.sandbox`)."""
        self._link = link
        self._host = host
        self._releases = releases or Releases()
        self._translator = Translator(self._emit)
        self._epoch = 0
        self._questions: dict[str, _OpenQuestion] = {}
        self._subagent_turns: dict[str, str] = {}
        """The running turns of subagents, by thread id."""
        self._end_tasks = TaskSet()
        """Calls that end the commands of interrupted turns."""
        self._turn_start: asyncio.Future[str] | None = None
        self._first_settings = first_settings or {}
        self._last_settings: dict[str, Any] = {}
        """The settings of the last turn, which hold until others are sent."""
        started = sandbox.with_first_settings(started, first_settings)
        self._info = thread_info(started["thread"], started)
        self.provider = str(started.get("modelProvider") or "")
        """The model provider, by Codex's name for it."""
        self._host_task: asyncio.Task[None] | None = None
        link.attach(self.thread_id, self)

    @property
    def info(self) -> ThreadInfo:
        return self._info

    @property
    def thread_id(self) -> str:
        return self._info.thread_id

    # ── called by the core ─────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        if spec.special_turn is not None:
            return await self._run_special_turn(ticket, spec.special_turn, self._settings(spec))
        settings = self._settings(spec)
        params = await self._turn_params(ticket, spec, settings)
        running = self._translator.turn_id
        turn_id = ""

        def begin(raw: Raw) -> None:
            # On the reader: Codex's own `turn/started` may come before this answer, or right after it.
            nonlocal turn_id
            turn_id = msgspec.json.decode(raw)["turn"]["id"]
            self._first_settings = {}
            self._last_settings = settings
            if turn_id != running:
                self._translator.begin(turn_id)

        self._translator.expect(ticket)
        try:
            await self._link.call("turn/start", params, on_reply=begin)
        finally:
            self._translator.expect(None)
        if turn_id == running:
            log.error("turn/start steered turn %s instead of starting one", turn_id)
            raise EngineRefused("turn/start", 0, "a turn is already running on this thread")
        return turn_id

    async def _run_special_turn(
        self, ticket: str, special_turn: SpecialTurn, settings: dict[str, Any]
    ) -> str:
        """Some of these calls answer with the turn, others do not; Codex reports its start in both cases."""
        from laneway.codex.special_turns import call_of  # for front ends that have commands

        method, params = call_of(special_turn)
        if self._translator.turn_id is not None:
            # Codex would stop the running turn for a compaction.
            raise EngineRefused(method, 0, "a turn is already running on this thread")
        changed = {name: value for name, value in settings.items() if self._last_settings.get(name) != value}
        if changed:
            # Such calls accept no settings; what is set here stays, as it does with a turn.
            await self._link.call("thread/settings/update", {"threadId": self.thread_id, **changed})
        self._last_settings, self._first_settings = settings, {}
        self._turn_start = asyncio.get_running_loop().create_future()

        def begin(raw: Raw) -> None:
            turn = msgspec.json.decode(raw).get("turn")
            if isinstance(turn, dict):
                self._translator.begin(str(turn["id"]))

        self._translator.expect(ticket, is_special_turn=True)
        try:
            await self._link.call(method, {"threadId": self.thread_id, **params}, on_reply=begin)
            async with asyncio.timeout(TURN_START_S):
                return await self._turn_start
        except TimeoutError:
            raise EngineRefused(method, 0, "it began no turn") from None
        finally:
            self._translator.expect(None)
            self._turn_start = None

    async def _turn_params(self, ticket: str, spec: TurnSpec, settings: dict[str, Any]) -> dict[str, Any]:
        params: TurnStartParams = {
            "threadId": self.thread_id,
            "input": [_input(part) for part in spec.parts],
            "clientUserMessageId": ticket,
        }
        if spec.output_schema is not None:
            params["outputSchema"] = spec.output_schema
        if spec.context:
            await self._add_context(params, spec.context)
        return {**params, **settings}

    def _settings(self, spec: TurnSpec) -> dict[str, Any]:
        return {**({} if spec.permit else self._first_settings), **turn_settings(spec)}

    async def _add_context(self, params: TurnStartParams, text: str) -> None:
        abilities = self._link.abilities
        if abilities.turn_context:
            params["additionalContext"] = context.additional_context(text, self._epoch)
        elif abilities.inject:
            await self._link.call(
                "thread/inject_items", {"threadId": self.thread_id, "items": context.injected_items(text)}
            )
        else:
            log.warning("Codex %s takes no context for a turn", abilities.version)

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        params: TurnSteerParams = {
            "threadId": self.thread_id,
            "expectedTurnId": turn_id,
            "input": [_input(part) for part in parts],
            "clientUserMessageId": ticket,
        }
        await self._link.call("turn/steer", params)

    async def interrupt(self, turn_id: str) -> None:
        """Stop a turn, and those of its subagents, which Codex would let continue."""
        running = self._translator.running_id if turn_id == self._translator.turn_id else turn_id
        calls = [
            asyncio.ensure_future(self._link.call("turn/interrupt", {"threadId": thread_id, "turnId": turn}))
            for thread_id, turn in (*self._subagent_turns.items(), (self.thread_id, running))
        ]
        try:
            # Only our own turn's answer counts: a subagent may have ended meanwhile, or never answer.
            await calls[-1]
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def answer(self, question_id: str, answer: Answer) -> None:
        question = self._questions.pop(question_id, None)
        if question is None or question.answer.done():  # it may have been withdrawn in this very moment
            raise QuestionGone(question_id)
        question.answer.set_result(answer)

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        """Turns from the newest back, or from the first on, as events."""
        return await history(self._link, self.thread_id, older, limit, oldest_first=oldest_first)

    async def release(self) -> None:
        """Release the thread and its writer lock."""
        self._link.detach(self.thread_id)
        await self._releases.release(self._link, self.thread_id)

    @property
    def owner(self) -> CodexThread:
        return self

    # ── called by the link ─────────────────────────────────────────────────

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None:
        self._translator.delta(DELTA_EVENTS[method], delta, frame)

    def on_notification(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        is_retry = method == "error" and params.get("willRetry") is True
        if is_retry and not self._translator.host and self._host_task is None:
            self._host_task = asyncio.get_running_loop().create_task(self._find_host(params))
        self._translator.notification(method, params, frame)

    def set_provider_host(self, *configs: dict[str, Any]) -> None:
        """Set the provider's host from the config. Which of OpenAI's hosts is used depends on the account."""
        if self.provider not in ("", provider.OPENAI):
            self._translator.host = provider.host(self.provider, None, *configs)

    async def _find_host(self, retry: dict[str, Any]) -> None:
        """Find the host that Codex cannot reach, at the first retry, which is then reported again with it."""
        try:
            account = await self._link.call("account/read", {"refreshToken": False})
            config = await self._link.users_config(self._info.cwd)
        except EngineError as problem:
            log.info("the model's provider cannot be told: %s", problem)
        else:
            self._translator.host = provider.host(self.provider, account, config)
            if self._translator.turn_id == retry.get("turnId"):
                self._translator.notification("error", retry, b"")

    async def on_request(self, method: str, params: dict[str, Any], request_id: bytes) -> Any:
        if method == "item/tool/call":
            result = await self._host.on_tool(
                params["tool"], params.get("arguments"), str(params.get("turnId"))
            )
            items = [{"type": "inputText", "text": text} for text in (result.text, *result.notes)]
            return {"contentItems": items, "success": not result.is_error}
        item = self._translator.item(str(params.get("itemId") or params.get("callId")))
        return await self.ask(method, params, item, request_id)

    async def ask(
        self, method: str, params: dict[str, Any], item: dict[str, Any] | None, request_id: bytes
    ) -> Any:
        """Ask the thread's owner; wait for the answer, or until Codex withdraws the question."""
        question = questions.question_of(method, params, new_id("q"), item)
        if question is None:
            raise RemoteError(METHOD_NOT_FOUND, f"Laneway does not serve {method}")
        open_question = _OpenQuestion(request_id, asyncio.get_running_loop().create_future())
        self._questions[question.question_id] = open_question
        try:
            self._host.on_event(Asked(question=question))
            return questions.reply(method, question, await open_question.answer)
        finally:
            self._withdraw(question.question_id)

    def on_resolved(self, request_id: bytes) -> None:
        """On the reader, so that the question is withdrawn before the turn is done."""
        for question_id, open_question in list(self._questions.items()):
            if open_question.request_id == request_id:
                self._withdraw(question_id)

    def _withdraw(self, question_id: str) -> None:
        if self._questions.pop(question_id, None) is not None:
            self._host.on_event(Withdrawn(question_id=question_id))

    def on_lost(self, how: str) -> None:
        loss = EngineLost(how, self._link.stderr_tail)
        if self._turn_start is not None and not self._turn_start.done():
            self._turn_start.set_exception(loss)
        self._translator.lost(loss)
        self._host.on_event(EngineGone(how=how, last_words=loss.last_words))

    def has_run(self, turn_id: str) -> bool:
        return self._translator.has_run(turn_id)

    def subagent(self, thread_id: str) -> Subagent:
        return Subagent(self, thread_id)

    def _emit(self, event: Event) -> None:
        if type(event) is TurnStarted:
            if self._turn_start is not None and not self._turn_start.done():
                self._turn_start.set_result(event.turn_id)
        elif type(event) is Compacted:
            self._epoch += 1
        elif type(event) is TurnDone:
            for question_id in list(self._questions):
                self._withdraw(question_id)
            self.end_commands(self.thread_id, self._translator.interrupted_processes)
        self._host.on_event(event)

    def end_commands(self, thread_id: str, process_ids: tuple[str, ...]) -> None:
        """End the commands of an interrupted turn, which Codex would let continue."""
        for process_id in process_ids:
            self._end_tasks.spawn(self._end_command(thread_id, process_id), "end of a command")

    async def _end_command(self, thread_id: str, process_id: str) -> None:
        params = {"threadId": thread_id}
        try:
            if self._link.abilities.ends_one_command:
                await self._link.call(
                    "thread/backgroundTerminals/terminate", {**params, "processId": process_id}
                )
            else:
                await self._link.call("thread/backgroundTerminals/clean", params)
        except EngineError as problem:
            log.info("a command of an interrupted turn could not be ended: %s", problem)

    def emit_from(self, subagent_id: str, event: Event) -> None:
        if type(event) is TurnStarted:
            self._subagent_turns[subagent_id] = event.turn_id
        elif type(event) is TurnDone:
            self._subagent_turns.pop(subagent_id, None)
        self._host.on_event(
            FromSubagent(thread_id=subagent_id, parent_id=self.thread_id, inner=event, frame=event.frame)
        )


class Subagent:
    """A thread that our thread started: its events are wrapped, its questions go to our thread's owner."""

    def __init__(self, parent: CodexThread, thread_id: str) -> None:
        self._parent = parent
        self._thread_id = thread_id
        self._translator = Translator(self._emit)

    @property
    def owner(self) -> CodexThread:
        return self._parent

    def on_delta(self, method: str, delta: Any, frame: bytes) -> None:
        self._translator.delta(DELTA_EVENTS[method], delta, frame)

    def on_notification(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        self._translator.notification(method, params, frame)

    async def on_request(self, method: str, params: dict[str, Any], request_id: bytes) -> Any:
        if method == "item/tool/call":
            return await self._parent.on_request(method, params, request_id)
        item = self._translator.item(str(params.get("itemId") or params.get("callId")))
        return await self._parent.ask(method, params, item, request_id)

    def on_resolved(self, request_id: bytes) -> None:
        self._parent.on_resolved(request_id)

    def on_lost(self, how: str) -> None:
        self._translator.lost(EngineLost(how))  # its parent emits `EngineGone`

    def has_run(self, turn_id: str) -> bool:
        return self._translator.has_run(turn_id)

    def subagent(self, thread_id: str) -> Subagent:
        return Subagent(self._parent, thread_id)

    def _emit(self, event: Event) -> None:
        if type(event) is TurnDone:
            self._parent.end_commands(self._thread_id, self._translator.interrupted_processes)
        self._parent.emit_from(self._thread_id, event)


async def history(
    link: Link, thread_id: str, older: str | None, limit: int, *, oldest_first: bool = False
) -> Page:
    """One page of turns of any thread, loaded or not."""
    if not link.abilities.history_pages:
        answer = await link.call("thread/read", {"threadId": thread_id, "includeTurns": True})
        turns, cursor = answer["thread"].get("turns") or [], None
    else:
        params: ThreadTurnsListParams = {
            "threadId": thread_id,
            "cursor": older,
            "limit": limit,
            "itemsView": "full",
            "sortDirection": "asc" if oldest_first else "desc",
        }
        try:
            page = await link.call("thread/turns/list", params)
        except EngineRefused as refused:
            if not has_no_turns(refused):
                raise
            page = {}
        turns, cursor = page.get("data") or [], page.get("nextCursor")
        if not oldest_first:
            turns = list(reversed(turns))
    return Page(tuple(event for turn in turns for event in replay(turn)), cursor)


def thread_info(thread: dict[str, Any], started: dict[str, Any] | None = None) -> ThreadInfo:
    return ThreadInfo(
        thread_id=str(thread["id"]),
        cwd=str(thread.get("cwd") or ""),
        title=str(thread.get("name") or thread.get("preview") or ""),
        updated_at=int(thread.get("updatedAt") or 0),
        native=started or thread,
    )


def _input(part: Part) -> Any:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(url=None, path=path):
            return {"type": "localImage", "path": path}
        case ImagePart(url=url):
            return {"type": "image", "url": url}
        case NativePart(value):
            return value
