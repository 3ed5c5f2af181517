"""The events of a session in the words of the removed `codex mcp-server` (0.153.4).

One `Legacy` per session: fed with each event of the core in order, unmerged or merged, it
returns the `msg` objects of the `codex/event` notifications that the old server would have
sent. Knows no door and no wire. Called on the engine's reader: it never waits and never raises.

`full` tells what the old server told. `compact` tells what a person would follow (`COMPACT`):
no raw items, no deltas, no items. The model's raw items come only on threads that were started
with `experimentalRawEvents`; without them a message is known to be whole a moment later, when
the next thing happens.

What the old server told and today's app-server cannot give:

- `task_started.model_context_window` in the first turn of a thread: known with the first count of tokens;
- the `phase` of a message on threads without raw items, and its `memory_citation`;
- standard error apart from standard output (unified exec did not tell them apart either), and what
  the patch tool printed when it failed;
- `isError` of a tool result: told again as far as the item's status says so.

Times are those of hearing, but for the ones that Codex tells at the end of a turn. Subagents'
events are left out, as the old server did: they belong to threads of their own.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from laneway.codex.legacy_items import LegacyContext, begun, ended
from laneway.codex.legacy_shapes import (
    COMPACT,
    LIMITS,
    UNTOLD,
    Message,
    asked,
    changed,
    error_info,
    session_configured,
    snake,
    snaked,
    token_counts,
    user_input,
)
from laneway.codex.legacy_speech import LegacySpeech
from laneway.codex.legacy_turn import McpStartups, TurnRecord
from laneway.core.model import (
    Accepted,
    Activity,
    Asked,
    Compacted,
    Diff,
    Event,
    Notice,
    Other,
    Output,
    Plan,
    Text,
    Thought,
    Titled,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)
from laneway.core.ports import ThreadInfo

Level = Literal["full", "compact"]

MAX_CALLS = 1024
"""Calls of one turn whose tool is remembered."""
_SHELLS = frozenset({"shell", "shell_command", "local_shell"})
"""Tools whose commands have no process id even while they run."""


class Legacy:
    def __init__(self, level: Level = "full", now: Callable[[], float] = time.time) -> None:
        self._is_full = level == "full"
        self._now = now
        self._thread_id = ""
        self._cwd = ""
        self._sandbox: dict[str, Any] = {}
        self._window: int | None = None
        self._limits: Any = None
        self._count: Message | None = None
        self._speech: LegacySpeech | None = None
        self._has_raw = False
        self._calls: dict[str, str] = {}
        self._announced: dict[str, Activity] = {}
        self._started_ms: dict[str, int] = {}
        self._said: Message | None = None
        self._turn = TurnRecord(now)
        self._servers = McpStartups()

    # ── what the door asks ─────────────────────────────────────────────────

    def opening(self, info: ThreadInfo) -> list[Message]:
        """What is told of a thread once it is there."""
        native = info.native
        self._thread_id, self._cwd = info.thread_id, info.cwd or str(native.get("cwd") or "")
        sandbox = native.get("sandbox")
        self._sandbox = sandbox if isinstance(sandbox, dict) else {}
        return [session_configured(native)]

    def of(self, event: Event) -> list[Message]:
        """The old events that this one is; often none, sometimes several."""
        if isinstance(event, Text):
            speech = self._speech
            if speech is not None and speech.item_id == event.item_id:
                if self._is_full:
                    return [speech.say(event.text)]
                speech.add(event.text)
                return []
        handler = _HANDLERS.get(type(event))
        if handler is None:
            return []
        told: list[Message] = []
        try:
            told += self._settle(event)
            told += handler(self, event)
        except (LookupError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            # A record of a shape that nobody has seen: the turn goes on, and so do its other events.
            if isinstance(event, Other):
                told += _passed_on(event.method, event.params)
        return told if self._is_full else [one for one in told if one["type"] in COMPACT]

    def _ms(self) -> int:
        return int(self._now() * 1000)

    def _scene(self) -> LegacyContext:
        return LegacyContext(self._thread_id, self._cwd, self._sandbox, self._ms())

    # ── words ──────────────────────────────────────────────────────────────

    def _text(self, event: Text) -> list[Message]:
        """The first piece of a message; `of` sees to all others."""
        self._turn.note_first()
        speech = self._speech = LegacySpeech(self._thread_id, event, self._ms())
        return [*speech.begin(), speech.say(event.text)]

    def _thought(self, event: Thought) -> list[Message]:
        speech = self._speech
        if speech is not None and speech.item_id == event.item_id:
            return speech.think(event)
        self._turn.note_first()
        speech = self._speech = LegacySpeech(self._thread_id, event, self._ms())
        return [*speech.begin(), *speech.think(event)]

    def _output(self, event: Output) -> list[Message]:
        told = self._run_announced(event.item_id)
        if not self._is_full:
            return told
        chunk = base64.b64encode(event.text.encode()).decode()
        delta = {"type": "exec_command_output_delta", "call_id": event.item_id, "stream": "stdout"}
        return [*told, {**delta, "chunk": chunk}]

    # ── what has waited for the next event ─────────────────────────────────

    def _settle(self, event: Event) -> list[Message]:
        told: list[Message] = []
        speech = self._speech
        if speech is not None and self._ends(speech, event):
            self._speech = None
            if not (isinstance(event, TurnDone) and event.status == "interrupted"):
                # An interrupted one was never whole, and the old server did not tell it as if it were.
                told += speech.end(self._ms(), _phase(event))
        if not (isinstance(event, Other) and event.method == LIMITS):
            told += self._counted()
        return told

    def _ends(self, speech: LegacySpeech, event: Event) -> bool:
        """Whether this tells that the message is whole: its raw item does, where there are any."""
        match event:
            case Other(method="rawResponseItem/completed", params=params):
                return bool(params["item"].get("id") == speech.item_id)
            case Usage():
                return not self._has_raw
            case Activity(status=status):
                return status == "running"
            case Text() | Thought():
                return event.item_id != speech.item_id
            case _:
                return isinstance(event, TurnDone | Plan | Asked | Compacted)

    def _counted(self) -> list[Message]:
        count, self._count = self._count, None
        return [] if count is None else [{**count, "rate_limits": self._limits}]

    # ── the turn ───────────────────────────────────────────────────────────

    def _turn_started(self, event: TurnStarted) -> list[Message]:
        return [*self._servers.at_first_turn(), self._turn.begin(event.turn_id, self._window)]

    def _turn_done(self, event: TurnDone) -> list[Message]:
        self._announced.clear()
        self._started_ms.clear()
        self._calls.clear()
        return self._turn.end(event)

    def _user_said(self, event: UserSaid) -> list[Message]:
        content: list[Any] = [{"type": "text", "text": event.text, "text_elements": []}]
        if self._is_full and event.frame:
            content = msgspec.json.decode(event.frame)["params"]["item"]["content"]
        item = {"type": "UserMessage", "id": event.item_id, "content": [user_input(part) for part in content]}
        self._said = {
            "thread_id": self._thread_id,
            "turn_id": event.turn_id,
            "item": item,
            "started_at_ms": self._ms(),
        }
        return [{"type": "item_started", **self._said}]

    def _accepted(self, event: Accepted) -> list[Message]:
        said, self._said = self._said, None
        if said is None:
            return []
        content = said["item"]["content"]
        message = {
            "type": "user_message",
            "message": "".join(part["text"] for part in content if part.get("type") == "text"),
            "images": [part["image_url"] for part in content if "image_url" in part],
            "local_images": [part["path"] for part in content if part.get("type") == "local_image"],
            "audio": [],
            "local_audio": [],
            "text_elements": [element for part in content for element in part.get("text_elements") or []],
        }
        return [{"type": "item_completed", **said, "completed_at_ms": self._ms()}, message]

    # ── activities ─────────────────────────────────────────────────────────

    def _activity(self, event: Activity) -> list[Message]:
        self._turn.note_first()
        if event.status == "running":
            return self._begin_activity(event)
        if event.status == "detached":
            return []  # it goes on; the old server would have told its end, if it ever came
        if event.item_id in self._announced and event.status in ("declined", "interrupted"):
            del self._announced[event.item_id]
            return []  # it never ran
        told = self._run_announced(event.item_id, event)
        scene = self._scene()
        return [*told, *ended(event, scene, self._started_ms.pop(event.item_id, scene.at_ms))]

    def _begin_activity(self, event: Activity) -> list[Message]:
        if event.item_id in self._started_ms:
            return [
                {"type": "patch_apply_updated", "call_id": event.item_id, "changes": changed(event.changes)}
            ]
        if self._only_announced(event):
            self._announced[event.item_id] = event
            return []
        scene = self._scene()
        self._started_ms[event.item_id] = scene.at_ms
        return begun(event, scene)

    def _only_announced(self, event: Activity) -> bool:
        """App-server shows a command before it asks whether it may run; the old server, when it ran.

        Such a command has no process yet. One of the older shell tools never has.
        """
        item = event.item
        return (
            event.kind == "command"
            and isinstance(item, dict)
            and item.get("processId") is None
            and item.get("source") == "agent"
            and self._calls.get(event.item_id) not in _SHELLS
        )

    def _run_announced(self, item_id: str, now: Activity | None = None) -> list[Message]:
        """What was only announced has turned out to run."""
        announced = self._announced.pop(item_id, None)
        if announced is None:
            return []
        scene = self._scene()
        self._started_ms[item_id] = scene.at_ms
        return begun(now or announced, scene)

    # ── the rest ───────────────────────────────────────────────────────────

    def _plan(self, event: Plan) -> list[Message]:
        steps = [
            {"step": s.text, "status": "in_progress" if s.status == "running" else s.status}
            for s in event.steps
        ]
        return [{"type": "plan_update", "explanation": event.explanation, "plan": steps}]

    def _diff(self, event: Diff) -> list[Message]:
        return [{"type": "turn_diff", "unified_diff": event.diff}]

    def _usage(self, event: Usage) -> list[Message]:
        """Held back for the limits, which come right behind it."""
        self._window = event.window or self._window
        usage = (
            msgspec.json.decode(event.frame)["params"]["tokenUsage"] if self._is_full and event.frame else {}
        )
        info = {
            "total_token_usage": token_counts(event.total, usage.get("total")),
            "last_token_usage": token_counts(event.last, usage.get("last")),
            "model_context_window": event.window,
        }
        self._count = {"type": "token_count", "info": info}
        return []

    def _notice(self, event: Notice) -> list[Message]:
        if event.level != "error":
            return [_warning(event)]
        error = msgspec.json.decode(event.frame)["params"]["error"] if event.frame else {}
        told = {"message": event.message, "codex_error_info": error_info(error.get("codexErrorInfo"))}
        if event.will_retry:
            told["message"] = error.get("message", event.message)  # ours has the details in it
            return [{"type": "stream_error", **told, "additional_details": error.get("additionalDetails")}]
        self._turn.error = told
        return [{"type": "error", **told}]

    def _asked(self, event: Asked) -> list[Message]:
        return asked(event.question, self._ms())

    def _compacted(self, event: Compacted) -> list[Message]:
        return [{"type": "context_compacted"}]

    def _titled(self, event: Titled) -> list[Message]:
        return [{"type": "thread_name_updated", "thread_id": self._thread_id, "thread_name": event.title}]

    def _other(self, event: Other) -> list[Message]:
        params = event.params if isinstance(event.params, dict) else {}
        match event.method:
            case "rawResponseItem/completed":
                return self._raw_item(params["item"])
            case "rawResponse/completed":
                usage = token_counts(Tokens(), params.get("usage"))
                told = {"type": "raw_response_completed", "response_id": params.get("responseId")}
                return [{**told, "token_usage": usage, "usage_metadata": params.get("usageMetadata")}]
            case "mcpServer/startupStatus/updated":
                return self._servers.heard(params)
            case method if method == LIMITS:
                self._limits = snaked(params.get("rateLimits"))
                return self._counted()
            case method if method in UNTOLD:
                return []
            case _:
                return _passed_on(event.method, event.params)

    def _raw_item(self, item: Message) -> list[Message]:
        self._has_raw = True
        if item.get("type") == "function_call" and len(self._calls) < MAX_CALLS:
            self._calls[str(item.get("call_id"))] = str(item.get("name"))
        return [{"type": "raw_response_item", "item": item}]


_HANDLERS: dict[type[Event], Callable[[Legacy, Any], list[Message]]] = {
    Text: Legacy._text,
    Thought: Legacy._thought,
    Output: Legacy._output,
    TurnStarted: Legacy._turn_started,
    TurnDone: Legacy._turn_done,
    UserSaid: Legacy._user_said,
    Accepted: Legacy._accepted,
    Activity: Legacy._activity,
    Plan: Legacy._plan,
    Diff: Legacy._diff,
    Usage: Legacy._usage,
    Notice: Legacy._notice,
    Asked: Legacy._asked,
    Compacted: Legacy._compacted,
    Titled: Legacy._titled,
    Other: Legacy._other,
}


def _phase(event: Event) -> str | None:
    """What a message was for, which only its raw item tells."""
    if isinstance(event, Other) and isinstance(event.params["item"].get("phase"), str):
        return str(event.params["item"]["phase"])
    return None


def _warning(event: Notice) -> Message:
    if event.frame.startswith(b'{"method":"deprecationNotice"'):
        params = msgspec.json.decode(event.frame)["params"]
        return {
            "type": "deprecation_notice",
            "summary": params.get("summary"),
            "details": params.get("details"),
        }
    return {"type": "warning", "message": event.message}


def _passed_on(method: str, params: Any) -> list[Message]:
    """What is newer than the old server, under a name of its kind."""
    if method.startswith("codex/event/"):
        return []  # the app-server of 0.104 tells everything twice: this is what we make ourselves
    fields = params if isinstance(params, dict) else {"params": params}
    return [{"type": snake(method), **{key: value for key, value in fields.items() if key != "type"}}]
