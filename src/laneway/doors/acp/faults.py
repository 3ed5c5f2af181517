"""How things end, in ACP's words: a stop reason for a turn that came to an end, an error for one that failed.

One table for both. `data` is for programs: the kind of the failure, and whether Codex or we said no;
its `details` repeats the message for clients that show a person nothing else (Toad, the SDKs' own errors).
"""

from __future__ import annotations

from typing import Any

from laneway.base.errors import (
    ActiveWriter,
    BinaryError,
    DiskFull,
    EngineClosed,
    EngineLost,
    EngineRefused,
    LanewayError,
    LimitReached,
    RemoteError,
    SessionClosed,
    SessionStuck,
    SessionUnknown,
    StoreError,
    ThreadUnknown,
)
from laneway.base.plain import plain
from laneway.core.model import Failure
from laneway.core.turn import TurnResult
from laneway.rendering.refusals import in_words, too_old

AUTH_REQUIRED = -32000
NOT_FOUND = -32002
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800

MAX_MESSAGE_CHARS = 4000
"""Of one message, which may repeat what a client or a model said."""

STOP_REASONS = {
    "context_window_exceeded": "max_tokens",
    "session_budget_exceeded": "max_tokens",
    "cyber_policy": "refusal",
    "misalignment_policy_violation": "refusal",
}
"""Failures for which the protocol has a word of its own."""
_BY_WORDS = {"reason: max_output_tokens": "max_tokens", "reason: content_filter": "refusal"}
"""The same, where Codex has only words for it (its kind is `other`)."""


class LoginNeeded(LanewayError):
    """The model's provider wants somebody to log in; whoever knows the ways answers."""

    def __init__(self, why: str = "", failure: RemoteError | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.failure = failure
        """What to say where logging in to Codex would not help."""


def stop_reason(result: TurnResult) -> str:
    """The stop reason of a turn; raises for one that failed."""
    if result.status == "completed":
        return "end_turn"
    if result.status == "interrupted":
        return "cancelled"
    failure = result.failure or Failure(kind="other", message="The turn failed and Codex did not say why")
    if failure.kind == "unauthorized" or failure.http_status == 401:
        raise LoginNeeded(failure.message, failed(failure, result.turn_id))
    reason = STOP_REASONS.get(failure.kind) or _by_words(failure.message)
    if reason is None:
        raise failed(failure, result.turn_id)
    return reason


def _by_words(message: str) -> str | None:
    return next((reason for words, reason in _BY_WORDS.items() if words in message), None)


def failed(failure: Failure, turn_id: str | None = None) -> RemoteError:
    data: dict[str, Any] = {"kind": failure.kind, "source": "codex"}
    if failure.http_status is not None:
        data["httpStatus"] = failure.http_status
    if turn_id:
        data["turnId"] = turn_id
    return fault(INTERNAL_ERROR, in_words(failure.message), **data)


def fault(code: int, message: str, **data: Any) -> RemoteError:
    return RemoteError(code, plain(message[:MAX_MESSAGE_CHARS]), data or None)


def bad_params(message: str) -> RemoteError:
    return fault(INVALID_PARAMS, message)


_CODES: tuple[tuple[type[LanewayError], int, str], ...] = (
    (SessionUnknown, NOT_FOUND, "session_unknown"),
    (ThreadUnknown, NOT_FOUND, "session_unknown"),
    (SessionClosed, INVALID_REQUEST, "session_closed"),
    (LimitReached, INVALID_REQUEST, "limit_reached"),
    (ActiveWriter, INVALID_REQUEST, "session_in_use"),
    (EngineLost, INTERNAL_ERROR, "engine_lost"),
    (DiskFull, INTERNAL_ERROR, "disk_full"),
    (EngineClosed, INTERNAL_ERROR, "ending"),
    (BinaryError, INTERNAL_ERROR, "no_codex"),
    (SessionStuck, INTERNAL_ERROR, "stuck"),
    (StoreError, INTERNAL_ERROR, "store"),
)


def wire_error(error: LanewayError) -> RemoteError:
    """The answer to a request that ended like this."""
    told = _wire_error(error)
    if told.data is not None and not isinstance(told.data, dict):
        return told
    return RemoteError(told.code, told.message, {**(told.data or {}), "details": told.message})


def _wire_error(error: LanewayError) -> RemoteError:
    match error:
        case RemoteError():
            return error
        case EngineRefused() if error.is_unknown_method:
            return fault(INTERNAL_ERROR, too_old(error), kind="codex_too_old", source="codex")
        case EngineRefused():
            return fault(
                INTERNAL_ERROR,
                f"Codex refused {error.method}: {error.message}",
                kind="refused",
                source="codex",
                codexCode=error.code,
            )
        case EngineLost():
            return fault(
                INTERNAL_ERROR,
                f"{error}. The next prompt starts it again.",
                kind="engine_lost",
                source="codex",
                **({"lastWords": error.last_words} if error.last_words else {}),
            )
    code, kind = next(
        ((code, kind) for type_, code, kind in _CODES if isinstance(error, type_)), (INTERNAL_ERROR, "other")
    )
    return fault(code, str(error), kind=kind, source="laneway")
