"""What people are told when a turn of an engine's lane fails: one or two sentences with the remedy. Pure."""

from __future__ import annotations

import msgspec

from laneway.base.errors import BinaryError, EngineLost, LanewayError, NotLoggedIn, SessionStuck
from laneway.core.model import Failure
from laneway.rendering.refusals import unwrapped_message

ENGINE_LOST = "engine_lost"
"""The kind of a failure by which an engine's process ended."""
LOGIN = "login"
"""Nobody is logged in."""
_LOGIN_KINDS = frozenset({"unauthorized", "authentication_failed", "authentication_error"})
"""How engines call it when their model refuses the login."""
_UNAUTHORIZED = 401


def failure_of(error: LanewayError, lane: str, login: str) -> Failure:
    """Why a turn never ran, or was given up. `login` is what to tell if nobody is logged in."""
    match error:
        case NotLoggedIn():
            return Failure(kind=LOGIN, message=login)
        case EngineLost():
            return Failure(kind=ENGINE_LOST, message=_starts_again(str(error), lane))
        case BinaryError():
            return Failure(kind="no_program", message=sentence(str(error)))
        case SessionStuck():
            return Failure(kind="stuck", message=sentence(str(error)))
        case _:
            return Failure(kind="refused", message=sentence(str(error)))


def in_words(failure: Failure | None, lane: str, login: str) -> Failure | None:
    """An engine's own failure, with the remedy where there is one."""
    if failure is None:
        return None
    if failure.kind in _LOGIN_KINDS or failure.http_status == _UNAUTHORIZED:
        return msgspec.structs.replace(failure, kind=LOGIN, message=login)
    if failure.kind == ENGINE_LOST:
        return msgspec.structs.replace(failure, message=_starts_again(failure.message, lane))
    return msgspec.structs.replace(failure, message=unwrapped_message(failure.message))


def sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _starts_again(text: str, lane: str) -> str:
    return f"{sentence(text)} The next /{lane} starts it again."
