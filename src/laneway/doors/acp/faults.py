"""Stop reasons of turns, and JSON-RPC errors for everything that fails in the ACP server.

An error's `data` is for programs: the kind of the failure, and whether Codex or Laneway refused; its
`details` repeats the message for clients that show nothing else (Toad, the SDKs' own errors).
"""

from __future__ import annotations

from typing import Any

from laneway.base.errors import (
    ActiveWriter,
    BinaryError,
    DiskFull,
    EngineCannot,
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
from laneway.rendering.refusals import too_old, unwrapped_message
from laneway.wire.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED = -32800

MAX_MESSAGE_CHARS = 4000
"""Of one error message, which may quote a client or a model."""

STOP_REASONS = {
    "context_window_exceeded": "max_tokens",
    "session_budget_exceeded": "max_tokens",
    "cyber_policy": "refusal",
    "misalignment_policy_violation": "refusal",
}
"""Kinds of failure for which the protocol has a stop reason."""
_BY_MESSAGE = {"reason: max_output_tokens": "max_tokens", "reason: content_filter": "refusal"}
"""The same for failures of kind `other`, which Codex tells apart only in the message."""


class LoginNeeded(LanewayError):
    """The model's provider requires a login. `Agent` turns this into an error with the login methods."""

    def __init__(self, why: str = "", failure: RemoteError | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.failure = failure
        """The error to answer with if a login to Codex would not help."""


def stop_reason(result: TurnResult) -> str:
    """The stop reason of a turn; raises if the turn failed."""
    if result.status == "completed":
        return "end_turn"
    if result.status == "interrupted":
        return "cancelled"
    failure = result.failure or Failure(kind="other", message="The turn failed and Codex did not say why")
    if failure.kind == "unauthorized" or failure.http_status == 401:
        raise LoginNeeded(failure.message, failed(failure, result.turn_id))
    reason = STOP_REASONS.get(failure.kind) or _by_message(failure.message)
    if reason is None:
        raise failed(failure, result.turn_id)
    return reason


def _by_message(message: str) -> str | None:
    return next((reason for text, reason in _BY_MESSAGE.items() if text in message), None)


def failed(failure: Failure, turn_id: str | None = None) -> RemoteError:
    data: dict[str, Any] = {"kind": failure.kind, "source": "codex"}
    if failure.http_status is not None:
        data["httpStatus"] = failure.http_status
    if turn_id:
        data["turnId"] = turn_id
    return fault(INTERNAL_ERROR, unwrapped_message(failure.message), **data)


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
    (EngineCannot, INVALID_REQUEST, "not_supported"),
    (SessionStuck, INTERNAL_ERROR, "stuck"),
    (StoreError, INTERNAL_ERROR, "store"),
)


def wire_error(error: LanewayError) -> RemoteError:
    """The JSON-RPC error for a request that failed with `error`."""
    remote = _wire_error(error)
    if remote.data is not None and not isinstance(remote.data, dict):
        return remote
    return RemoteError(remote.code, remote.message, {**(remote.data or {}), "details": remote.message})


def _wire_error(error: LanewayError) -> RemoteError:
    match error:
        case RemoteError():
            return error
        case EngineRefused() if error.is_unknown_method:
            return fault(INTERNAL_ERROR, too_old(error), kind="codex_too_old", source="codex")
        case EngineRefused():
            return fault(
                INTERNAL_ERROR,
                f"{error.engine} refused {error.method}: {error.message}",
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
