"""Converts app-server's notifications to the core's events, with one translator per thread.

Owns the state that the promises of `laneway.core.model` need: one `TurnStarted` and one last
`TurnDone` per turn, every activity ended, no output lost or sent twice (`laneway.codex.outputs`).
Knows nothing of sessions, requests or processes. Never raises, whatever Codex sends; what it does not
know becomes `Other`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from laneway.base.errors import EngineLost
from laneway.codex.items import TEXT_ITEMS, activity, maybe
from laneway.codex.notices import notice_text
from laneway.codex.outputs import CommandOutputs
from laneway.codex.own_features import is_about_own_features
from laneway.core.model import (
    Accepted,
    Activity,
    ActivityStatus,
    Compacted,
    Diff,
    Event,
    Failure,
    Notice,
    Other,
    Output,
    Plan,
    PlanStep,
    SettingsChanged,
    Text,
    Thought,
    Titled,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)

log = logging.getLogger(__name__)


class Delta(msgspec.Struct, gc=False):
    """The shape of all text deltas: the hot path reads only these four fields."""

    threadId: str
    turnId: str
    itemId: str
    delta: str


DELTA_EVENTS: dict[str, type[Text] | type[Thought] | type[Output]] = {
    "item/agentMessage/delta": Text,
    "item/reasoning/summaryTextDelta": Thought,
    "item/reasoning/textDelta": Thought,
    "item/commandExecution/outputDelta": Output,
}
_DELTA_METHODS = {kind: method for method, kind in reversed(DELTA_EVENTS.items())}
decode_delta = msgspec.json.Decoder(Delta).decode
ENGINE_LOST = "engine_lost"
_URL = re.compile(r"\(?\b\w+://[^\s)]+\)?")


class Translator:
    """Called with the notifications of one thread in order; emits events in order."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._turn_id: str | None = None
        self._finished_turn_id: str | None = None
        self._expected_ticket: str | None = None
        self._expects_special_turn = False
        self._review_turn: str | None = None
        self._is_review = False
        self._text = ""
        self._sent_chars: dict[str, int] = {}
        self._open: dict[str, dict[str, Any]] = {}
        self._drafts: set[str] = set()
        """Ids of edits that the model is still writing."""
        self._outputs = CommandOutputs()
        self.host = ""
        """The model provider's host, once known; part of the message when Codex retries."""
        self.interrupted_processes: tuple[str, ...] = ()
        """Codex's ids of the commands that were running when the last turn was interrupted."""

    @property
    def turn_id(self) -> str | None:
        return self._turn_id

    def has_run(self, turn_id: str) -> bool:
        """Whether this is the running turn, or the one before."""
        return turn_id in (self._turn_id, self._finished_turn_id)

    def item(self, item_id: str) -> dict[str, Any] | None:
        """An item in progress, for questions that contain only its id."""
        return self._open.get(item_id)

    # ── turns ──────────────────────────────────────────────────────────────

    @property
    def running_id(self) -> str | None:
        """The id by which Codex interrupts the running turn. A review has two ids."""
        return self._review_turn or self._turn_id

    def expect(self, ticket: str | None, *, is_special_turn: bool = False) -> None:
        """A turn was requested: the next one that begins is this ticket's. None cancels that."""
        self._expected_ticket = ticket
        self._expects_special_turn = is_special_turn

    def begin(self, turn_id: str, frame: bytes = b"") -> None:
        """A turn begins. Both the answer to our request and Codex's notification say so, in either order."""
        if turn_id in (self._turn_id, self._finished_turn_id):
            return
        ticket, self._expected_ticket = self._expected_ticket, None
        if self._turn_id is not None:
            log.warning("turn %s began before %s had ended", turn_id, self._turn_id)
            self.finish("interrupted", None, b"")
        self._turn_id = turn_id
        self._text = ""
        self._emit(TurnStarted(turn_id=turn_id, ticket=ticket, frame=frame))

    def finish(self, status: Any, failure: Failure | None, frame: bytes) -> None:
        """The running turn ends, and with it its open activities."""
        turn_id, review_turn = self._turn_id, self._review_turn
        self._turn_id = self._review_turn = None
        self._is_review = False
        if turn_id is None:
            return
        self.interrupted_processes = _process_ids(self._open.values()) if status == "interrupted" else ()
        for item in list(self._open.values()):
            activity_event = activity(turn_id, item, ended=True)
            final_status = self._status_at_end(activity_event, status, failure)
            self._emit(self._outputs.detach(msgspec.structs.replace(activity_event, status=final_status)))
        self._open.clear()
        self._drafts.clear()
        self._outputs.end_turn()
        self._sent_chars.clear()
        self._finished_turn_id = turn_id
        done = TurnDone(
            turn_id=turn_id, status=status, first_id=review_turn, text=self._text, failure=failure
        )
        self._emit(msgspec.structs.replace(done, frame=frame))

    def _status_at_end(self, open_activity: Activity, status: Any, failure: Failure | None) -> ActivityStatus:
        """The status of an activity that is open when its turn ends."""
        if status == "completed":
            # A draft is a patch that Codex never applied, because it did not fit the files.
            return "failed" if open_activity.item_id in self._drafts else "detached"
        has_engine = failure is None or failure.kind != ENGINE_LOST
        if status == "failed" and open_activity.kind == "command" and has_engine:
            return "detached"  # the model failed, not the command
        return "interrupted"

    def lost(self, loss: EngineLost) -> None:
        """The engine died."""
        failure = Failure(kind=ENGINE_LOST, message=str(loss))
        self.finish("failed", failure, b"")

    # ── notifications ──────────────────────────────────────────────────────

    def delta(self, kind: type[Text] | type[Thought] | type[Output], delta: Delta, frame: bytes) -> None:
        if delta.turnId != self._turn_id:
            if kind is Output:
                self._outputs.add_detached(delta.turnId, delta.itemId, delta.delta)
            self._emit_other(_DELTA_METHODS[kind], msgspec.structs.asdict(delta), frame)
            return
        item_id = delta.itemId
        text = delta.delta
        if kind is Output:
            self._outputs.add(item_id, text)
        else:
            self._sent_chars[item_id] = self._sent_chars.get(item_id, 0) + len(text)
        self._emit(kind(turn_id=delta.turnId, item_id=item_id, text=text, frame=frame))

    def notification(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        handler = _HANDLERS.get(method)
        if handler is None:
            self._emit_other(method, params, frame)
            return
        try:
            handler(self, params, frame)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            log.warning("%s has an unexpected shape: %.200r", method, problem)
            self._emit_other(method, params, frame)

    def _emit_other(self, method: str, params: Any, frame: bytes) -> None:
        notice = notice_text(method, params)
        self._emit(Other(method=str(method), params=params, notice=notice, frame=frame))

    def _turn_started(self, params: dict[str, Any], frame: bytes) -> None:
        turn_id, root = _text(params["turn"]["id"]), params["turn"].get("rootTurnId")
        if (
            isinstance(root, str)
            and root != turn_id
            and (root == self._turn_id or self._expects_special_turn)
        ):
            # A review: everything else, and its end, has the id of its root turn.
            self.begin(root, frame)
            self._review_turn = turn_id
        elif root is None and self._is_review and self._turn_id is not None and turn_id != self._turn_id:
            self._review_turn = turn_id  # the same in a Codex that does not name the root (up to 0.153)
        else:
            self.begin(turn_id, frame)

    def _turn_completed(self, params: dict[str, Any], frame: bytes) -> None:
        turn = params["turn"]
        if turn["id"] != self._turn_id:
            self._emit_other("turn/completed", params, frame)
            return
        status = turn.get("status")
        if status not in ("completed", "interrupted"):
            status = "failed"
        error = turn.get("error")
        failure = failure_of(error) if error else None
        if status == "failed" and failure is None:
            failure = Failure(kind="other", message="The turn failed and Codex did not say why")
        self.finish(status, failure, frame)

    def _item_started(self, params: dict[str, Any], frame: bytes) -> None:
        item, turn_id = params["item"], params["turnId"]
        if self._turn_id is None and self._expects_special_turn:
            self.begin(_text(turn_id))  # a compaction of Codex 0.104, which reports no start
        if turn_id != self._turn_id:
            self._emit_other("item/started", params, frame)
        elif item["type"] == "userMessage":
            said = UserSaid(
                turn_id=turn_id,
                item_id=_text(item["id"]),
                text=_input_text(item),
                content=item.get("content"),
                client_id=maybe(item.get("clientId"), str),
                frame=frame,
            )
            self._emit(said)
        elif item["type"] not in TEXT_ITEMS:
            self._is_review = self._is_review or item["type"] == "enteredReviewMode"
            # Converted before it is stored: what fails now would fail again at the end of the turn.
            activity_event = activity(turn_id, item, ended=False, frame=frame)
            self._open[activity_event.item_id] = item
            self._drafts.discard(activity_event.item_id)
            self._emit(activity_event)

    def _item_completed(self, params: dict[str, Any], frame: bytes) -> None:
        item, turn_id = params["item"], params["turnId"]
        kind = item["type"]
        if turn_id != self._turn_id:
            self._detached_completed(params, frame)
        elif kind == "userMessage":
            # Not at its start: killed then, Codex left it out of its paged history in 4 of 40
            # trials; killed here, in none.
            item_id, ticket = _text(item["id"]), maybe(item.get("clientId"), str)
            self._emit(Accepted(turn_id=turn_id, item_id=item_id, client_id=ticket, frame=frame))
        elif kind in ("agentMessage", "plan"):
            item_id, text = _text(item["id"]), _text(item["text"])
            self._text = text
            self._emit_rest(Text, turn_id, item_id, text, frame)
        elif kind == "reasoning":
            summary = "\n\n".join(item.get("summary") or [])
            self._emit_rest(Thought, turn_id, _text(item["id"]), summary, frame)
        elif kind not in TEXT_ITEMS:
            activity_event = activity(turn_id, item, ended=True, frame=frame)
            self._open.pop(activity_event.item_id, None)
            self._emit(self._outputs.end(activity_event))
            if kind == "contextCompaction":
                self._emit(Compacted(turn_id=turn_id))

    def _detached_completed(self, params: dict[str, Any], frame: bytes) -> None:
        """The end of a detached command; nothing else is expected after its turn."""
        item, turn_id = params["item"], params["turnId"]
        if not self._outputs.is_detached(turn_id, item["id"]):
            self._emit_other("item/completed", params, frame)
            return
        outlived = self._outputs.end_detached(activity(turn_id, item, ended=True))
        self._emit(msgspec.structs.replace(outlived, frame=frame))

    def _emit_rest(
        self, kind: type[Text] | type[Thought], turn_id: str, item_id: str, text: str, frame: bytes
    ) -> None:
        """Emit the text that the deltas left out: all of it, if there were none."""
        sent = self._sent_chars.pop(item_id, 0)
        if sent < len(text) and (kind is Text or sent == 0):
            self._emit(kind(turn_id=turn_id, item_id=item_id, text=text[sent:], frame=frame))

    def _patch_updated(self, params: dict[str, Any], frame: bytes) -> None:
        item = self._open.get(params["itemId"])
        if params["turnId"] != self._turn_id:
            self._emit_other("item/fileChange/patchUpdated", params, frame)
            return
        is_draft = item is None  # still being written by the model, before the item starts
        item = {**(item or {"type": "fileChange", "id": params["itemId"], "status": "inProgress"})}
        item["changes"] = params["changes"]
        activity_event = activity(_text(params["turnId"]), item, ended=False, frame=frame)
        self._open[activity_event.item_id] = item
        if is_draft:
            self._drafts.add(activity_event.item_id)
        self._emit(activity_event)

    def _summary_part(self, params: dict[str, Any], frame: bytes) -> None:
        if params.get("summaryIndex", 0) > 0 and params["turnId"] == self._turn_id:
            item_id = _text(params["itemId"])
            self._sent_chars[item_id] = self._sent_chars.get(item_id, 0) + 2
            self._emit(Thought(turn_id=params["turnId"], item_id=item_id, text="\n\n", frame=frame))

    def _plan_delta(self, params: dict[str, Any], frame: bytes) -> None:
        self.delta(Text, msgspec.convert(params, Delta), frame)

    def _plan(self, params: dict[str, Any], frame: bytes) -> None:
        steps = tuple(
            PlanStep(text=_text(step["step"]), status=_PLAN_STATUS.get(step["status"], "pending"))
            for step in params["plan"]
        )
        explanation = maybe(params.get("explanation"), str)
        self._emit(Plan(turn_id=_text(params["turnId"]), steps=steps, explanation=explanation, frame=frame))

    def _diff(self, params: dict[str, Any], frame: bytes) -> None:
        self._emit(Diff(turn_id=_text(params["turnId"]), diff=_text(params["diff"]), frame=frame))

    def _usage(self, params: dict[str, Any], frame: bytes) -> None:
        usage = params["tokenUsage"]
        self._emit(
            Usage(
                turn_id=_text(params["turnId"]),
                last=_tokens(usage["last"]),
                total=_tokens(usage["total"]),
                window=maybe(usage.get("modelContextWindow"), int),
                frame=frame,
            )
        )

    def _error(self, params: dict[str, Any], frame: bytes) -> None:
        message = str(params["error"]["message"])
        retry = bool(params.get("willRetry"))
        if retry:
            message = _with_cause(message, params["error"].get("additionalDetails"), self.host)
        turn_id = maybe(params.get("turnId"), str)
        self._emit(Notice(level="error", message=message, turn_id=turn_id, will_retry=retry, frame=frame))

    def _warning(self, params: dict[str, Any], frame: bytes) -> None:
        message = str(params.get("message") or params.get("summary"))
        if is_about_own_features(message):
            return
        self._emit(Notice(level="warning", message=message, frame=frame))

    def _title(self, params: dict[str, Any], frame: bytes) -> None:
        self._emit(Titled(title=str(params.get("threadName") or params.get("name") or ""), frame=frame))

    def _settings(self, params: dict[str, Any], frame: bytes) -> None:
        settings = params.get("threadSettings") or params.get("settings") or params
        self._emit(SettingsChanged(settings=settings, frame=frame))


_PLAN_STATUS: dict[str, Any] = {"pending": "pending", "inProgress": "running", "completed": "completed"}
_HANDLERS: dict[str, Callable[[Translator, dict[str, Any], bytes], None]] = {
    "turn/started": Translator._turn_started,
    "turn/completed": Translator._turn_completed,
    "item/started": Translator._item_started,
    "item/completed": Translator._item_completed,
    "item/fileChange/patchUpdated": Translator._patch_updated,
    "item/reasoning/summaryPartAdded": Translator._summary_part,
    "item/plan/delta": Translator._plan_delta,
    "turn/plan/updated": Translator._plan,
    "turn/diff/updated": Translator._diff,
    "thread/tokenUsage/updated": Translator._usage,
    "error": Translator._error,
    "warning": Translator._warning,
    "configWarning": Translator._warning,
    "deprecationNotice": Translator._warning,
    "guardianWarning": Translator._warning,
    "thread/name/updated": Translator._title,
    "thread/settings/updated": Translator._settings,
}


def _with_cause(message: str, details: Any, host: str) -> str:
    """The message of a retry, with host and cause. A URL is replaced by its host."""
    cause = _URL.sub(lambda url: host or "the provider", details) if isinstance(details, str) else ""
    details_text = ": ".join(part for part in (host, cause) if part)
    return f"{message} ({details_text})" if details_text else message


def _process_ids(items: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The process ids of running commands; before 0.133 there are none, and commands end with their turn."""
    process_ids = (item.get("processId") for item in items if item.get("type") == "commandExecution")
    return tuple(process_id for process_id in process_ids if isinstance(process_id, str))


def failure_of(error: Any) -> Failure:
    """Codex's error as a `Failure`. The kind is Codex's own word in snake_case."""
    if not isinstance(error, dict):
        return Failure(kind="other", message=str(error))  # an unknown shape must not keep a turn from ending
    info = error.get("codexErrorInfo")
    status = None
    if isinstance(info, dict) and info:
        kind, details = next(iter(info.items()))
        status = maybe(details.get("httpStatusCode"), int) if isinstance(details, dict) else None
    else:
        kind = info if isinstance(info, str) else "other"
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", str(kind)).lower()
    return Failure(kind=snake, message=str(error.get("message") or "no reason given"), http_status=status)


def replay(turn: dict[str, Any]) -> list[Event]:
    """A recorded turn as events."""
    events: list[Event] = []
    translator = Translator(events.append)
    turn_id = str(turn.get("id") or "")
    translator.begin(turn_id)
    for item in turn.get("items") or []:
        params = {"item": item, "turnId": turn_id}
        if isinstance(item, dict) and item.get("type") == "userMessage":
            translator.notification("item/started", params, b"")
        translator.notification("item/completed", params, b"")
    if turn.get("status") != "inProgress":
        translator.notification("turn/completed", {"turn": turn}, b"")
    return [event for event in events if not isinstance(event, Accepted)]


def _tokens(counts: dict[str, Any]) -> Tokens:
    return Tokens(
        input=maybe(counts.get("inputTokens"), int) or 0,
        cached_input=maybe(counts.get("cachedInputTokens"), int) or 0,
        output=maybe(counts.get("outputTokens"), int) or 0,
        reasoning=maybe(counts.get("reasoningOutputTokens"), int) or 0,
        total=maybe(counts.get("totalTokens"), int) or 0,
    )


def _input_text(item: dict[str, Any]) -> str:
    return "\n".join(str(part["text"]) for part in item.get("content") or [] if part.get("type") == "text")


def _text(value: Any) -> str:
    """Check a field that must be text. Structs do not validate, so a reader would fail later."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
