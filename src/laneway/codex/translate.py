"""Frames to events, one translator per thread.

Owns what must be remembered to keep the promises of `laneway.core.model`: one
`TurnStarted` and one last `TurnDone` per turn, every activity ended, no byte of output
lost or told twice (`laneway.codex.outputs`). Knows nothing of sessions, requests or
processes. Never raises on what Codex sends; what it does not know it hands on as `Other`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from laneway.base.errors import EngineLost
from laneway.codex.items import SPOKEN, activity, maybe
from laneway.codex.outputs import CommandOutputs
from laneway.codex.own_features import is_about_ours
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
    """The one shape of all text deltas: the hot path reads these four fields and no more."""

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
    """Feed it the notifications of one thread in order; it emits events in order."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._turn: str | None = None
        self._finished: str | None = None
        self._expected: str | None = None
        self._expects_errand = False
        self._inner: str | None = None
        self._is_review = False
        self._text = ""
        self._said: dict[str, int] = {}
        self._open: dict[str, dict[str, Any]] = {}
        self._drafts: set[str] = set()
        """Edits of which only the draft was told."""
        self._outputs = CommandOutputs()
        self.host = ""
        """Of the model's provider, once somebody has found it out: said when Codex tries it again."""
        self.abandoned: tuple[str, ...] = ()
        """Processes of the commands that the last turn left when it was interrupted, as Codex names them."""

    @property
    def turn_id(self) -> str | None:
        return self._turn

    def has_run(self, turn_id: str) -> bool:
        """Whether this is the running turn, or the one before."""
        return turn_id in (self._turn, self._finished)

    def item(self, item_id: str) -> dict[str, Any] | None:
        """An item that is under way, for questions that only name it."""
        return self._open.get(item_id)

    # ── turns ──────────────────────────────────────────────────────────────

    @property
    def running_id(self) -> str | None:
        """What Codex calls the running turn when it is to be stopped. A review has two ids."""
        return self._inner or self._turn

    def expect(self, ticket: str | None, *, is_errand: bool = False) -> None:
        """A turn has been asked for: the next one that begins is this ticket's. None takes that back."""
        self._expected = ticket
        self._expects_errand = is_errand

    def begin(self, turn_id: str, frame: bytes = b"") -> None:
        """A turn begins. The answer to our request and Codex's notification both tell, in either order."""
        if turn_id in (self._turn, self._finished):
            return
        ticket, self._expected = self._expected, None
        if self._turn is not None:
            log.warning("turn %s began before %s had ended", turn_id, self._turn)
            self.finish("interrupted", None, b"")
        self._turn = turn_id
        self._text = ""
        self._emit(TurnStarted(turn_id=turn_id, ticket=ticket, frame=frame))

    def finish(self, status: Any, failure: Failure | None, frame: bytes) -> None:
        """The running turn ends; whatever it left open ends with it."""
        turn_id, inner = self._turn, self._inner
        self._turn = self._inner = None
        self._is_review = False
        if turn_id is None:
            return
        self.abandoned = _processes(self._open.values()) if status == "interrupted" else ()
        for item in list(self._open.values()):
            shown = activity(turn_id, item, ended=True)
            left = self._left_as(shown, status, failure)
            self._emit(self._outputs.leave(msgspec.structs.replace(shown, status=left)))
        self._open.clear()
        self._drafts.clear()
        self._outputs.end_turn()
        self._said.clear()
        self._finished = turn_id
        done = TurnDone(turn_id=turn_id, status=status, first_id=inner, text=self._text, failure=failure)
        self._emit(msgspec.structs.replace(done, frame=frame))

    def _left_as(self, open_one: Activity, status: Any, failure: Failure | None) -> ActivityStatus:
        """How an activity ends that its turn leaves open."""
        if status == "completed":
            # A draft is a patch that Codex never began: it did not fit the files.
            return "failed" if open_one.item_id in self._drafts else "detached"
        has_engine = failure is None or failure.kind != ENGINE_LOST
        if status == "failed" and open_one.kind == "command" and has_engine:
            return "detached"  # the model failed, not the command
        return "interrupted"

    def lost(self, loss: EngineLost) -> None:
        """The engine died."""
        failure = Failure(kind=ENGINE_LOST, message=str(loss))
        self.finish("failed", failure, b"")

    # ── what comes from Codex ──────────────────────────────────────────────

    def delta(self, kind: type[Text] | type[Thought] | type[Output], delta: Delta, frame: bytes) -> None:
        if delta.turnId != self._turn:
            if kind is Output:
                self._outputs.add_late(delta.turnId, delta.itemId, delta.delta)
            self._stray(_DELTA_METHODS[kind], msgspec.structs.asdict(delta), frame)
            return
        item_id = delta.itemId
        text = delta.delta
        if kind is Output:
            self._outputs.add(item_id, text)
        else:
            self._said[item_id] = self._said.get(item_id, 0) + len(text)
        self._emit(kind(turn_id=delta.turnId, item_id=item_id, text=text, frame=frame))

    def notification(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        handler = _HANDLERS.get(method)
        if handler is None:
            self._stray(method, params, frame)
            return
        try:
            handler(self, params, frame)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as surprise:
            log.warning("%s has an unexpected shape: %.200r", method, surprise)
            self._stray(method, params, frame)

    def _stray(self, method: str, params: Any, frame: bytes) -> None:
        self._emit(Other(method=str(method), params=params, frame=frame))

    def _turn_started(self, params: dict[str, Any], frame: bytes) -> None:
        turn_id, root = _text(params["turn"]["id"]), params["turn"].get("rootTurnId")
        if isinstance(root, str) and root != turn_id and (root == self._turn or self._expects_errand):
            # A review: everything else, and its end, is told under the id of its root.
            self.begin(root, frame)
            self._inner = turn_id
        elif root is None and self._is_review and self._turn is not None and turn_id != self._turn:
            self._inner = turn_id  # the same, of a Codex that does not name the root (up to 0.153)
        else:
            self.begin(turn_id, frame)

    def _turn_completed(self, params: dict[str, Any], frame: bytes) -> None:
        turn = params["turn"]
        if turn["id"] != self._turn:
            self._stray("turn/completed", params, frame)
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
        if self._turn is None and self._expects_errand:
            self.begin(_text(turn_id))  # a compaction of Codex 0.104, which tells of no start
        if turn_id != self._turn:
            self._stray("item/started", params, frame)
        elif item["type"] == "userMessage":
            item_id, content = _text(item["id"]), item.get("content")
            said = UserSaid(
                turn_id=turn_id, item_id=item_id, text=_input_text(item), content=content, frame=frame
            )
            self._emit(said)
        elif item["type"] not in SPOKEN:
            self._is_review = self._is_review or item["type"] == "enteredReviewMode"
            # Shown before it is kept: what cannot be shown now cannot be shown at the end of the turn.
            shown = activity(turn_id, item, ended=False, frame=frame)
            self._open[shown.item_id] = item
            self._drafts.discard(shown.item_id)
            self._emit(shown)

    def _item_completed(self, params: dict[str, Any], frame: bytes) -> None:
        item, turn_id = params["item"], params["turnId"]
        kind = item["type"]
        if turn_id != self._turn:
            self._ended_late(params, frame)
        elif kind == "userMessage":
            # Not when it starts: killed there, Codex kept it out of its paged history in 4 of 40
            # trials; killed here, in none.
            self._emit(Accepted(turn_id=turn_id, client_id=maybe(item.get("clientId"), str), frame=frame))
        elif kind in ("agentMessage", "plan"):
            item_id, text = _text(item["id"]), _text(item["text"])
            self._text = text
            self._say_rest(Text, turn_id, item_id, text, frame)
        elif kind == "reasoning":
            summary = "\n\n".join(item.get("summary") or [])
            self._say_rest(Thought, turn_id, _text(item["id"]), summary, frame)
        elif kind not in SPOKEN:
            shown = activity(turn_id, item, ended=True, frame=frame)
            self._open.pop(shown.item_id, None)
            self._emit(self._outputs.end(shown))
            if kind == "contextCompaction":
                self._emit(Compacted(turn_id=turn_id))

    def _ended_late(self, params: dict[str, Any], frame: bytes) -> None:
        """The end of a command that its turn left running; nothing else is expected behind its turn."""
        item, turn_id = params["item"], params["turnId"]
        if not self._outputs.has_left(turn_id, item["id"]):
            self._stray("item/completed", params, frame)
            return
        outlived = self._outputs.end_late(activity(turn_id, item, ended=True))
        self._emit(msgspec.structs.replace(outlived, frame=frame))

    def _say_rest(
        self, kind: type[Text] | type[Thought], turn_id: str, item_id: str, whole: str, frame: bytes
    ) -> None:
        """Tell what the deltas left out: all of it, where there were none."""
        said = self._said.pop(item_id, 0)
        if said < len(whole) and (kind is Text or said == 0):
            self._emit(kind(turn_id=turn_id, item_id=item_id, text=whole[said:], frame=frame))

    def _patch_updated(self, params: dict[str, Any], frame: bytes) -> None:
        item = self._open.get(params["itemId"])
        if params["turnId"] != self._turn:
            self._stray("item/fileChange/patchUpdated", params, frame)
            return
        is_draft = item is None  # still being written by the model: told before the item starts
        item = {**(item or {"type": "fileChange", "id": params["itemId"], "status": "inProgress"})}
        item["changes"] = params["changes"]
        shown = activity(_text(params["turnId"]), item, ended=False, frame=frame)
        self._open[shown.item_id] = item
        if is_draft:
            self._drafts.add(shown.item_id)
        self._emit(shown)

    def _summary_part(self, params: dict[str, Any], frame: bytes) -> None:
        if params.get("summaryIndex", 0) > 0 and params["turnId"] == self._turn:
            item_id = _text(params["itemId"])
            self._said[item_id] = self._said.get(item_id, 0) + 2
            self._emit(Thought(turn_id=params["turnId"], item_id=item_id, text="\n\n", frame=frame))

    def _plan_delta(self, params: dict[str, Any], frame: bytes) -> None:
        self.delta(Text, msgspec.convert(params, Delta), frame)

    def _plan(self, params: dict[str, Any], frame: bytes) -> None:
        steps = tuple(
            PlanStep(text=_text(step["step"]), status=_PLAN_STATUS.get(step["status"], "pending"))
            for step in params["plan"]
        )
        why = maybe(params.get("explanation"), str)
        self._emit(Plan(turn_id=_text(params["turnId"]), steps=steps, explanation=why, frame=frame))

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
        if is_about_ours(message):
            return
        self._emit(Notice(level="warning", message=message, frame=frame))

    def _named(self, params: dict[str, Any], frame: bytes) -> None:
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
    "thread/name/updated": Translator._named,
    "thread/settings/updated": Translator._settings,
}


def _with_cause(message: str, details: Any, host: str) -> str:
    """A retry in words: what is tried, and why again. Of a URL only the host is told."""
    cause = _URL.sub(lambda url: host or "the provider", details) if isinstance(details, str) else ""
    told = ": ".join(part for part in (host, cause) if part)
    return f"{message} ({told})" if told else message


def _processes(items: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Of commands that run; those before 0.133 have none, and end with their turn."""
    named = (item.get("processId") for item in items if item.get("type") == "commandExecution")
    return tuple(process_id for process_id in named if isinstance(process_id, str))


def failure_of(error: Any) -> Failure:
    """Codex's error as ours. The kind is Codex's own word in snake_case."""
    if not isinstance(error, dict):
        return Failure(kind="other", message=str(error))  # an odd error must not keep a turn from ending
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
    """A turn from the records as the events that it once was."""
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
    """What an event promises to be text. Structs do not look, and readers would trip over it later."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
