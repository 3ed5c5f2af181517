"""Turns Laneway's errors into JSON-RPC errors: one place, one table.

The codes up to `IDENTITY_REQUIRED` are those of the original specification of `atm-agent-mcp`.
A client such as Claude Code shows its model the message alone, so each is a whole sentence that
names the session and the way out. `data.error_source` tells whether Laneway (`proxy`) or Codex
(`child`) refused.
"""

from __future__ import annotations

from typing import Any

from laneway.base.errors import (
    ActiveWriter,
    BadCursor,
    BadName,
    BinaryError,
    BudgetSpent,
    ConfigRefused,
    DiskFull,
    EngineCannot,
    EngineLost,
    EngineRefused,
    IdentityHeld,
    IdentityTaken,
    LanewayError,
    LimitReached,
    MemberForeign,
    NotLoggedIn,
    QuestionGone,
    RemoteError,
    SessionClosed,
    SessionStuck,
    SessionUnknown,
    SettingError,
    TaskUnknown,
    ThreadUnknown,
    UsageError,
)
from laneway.base.plain import plain
from laneway.doors.mcp.names import AGENTS, Names
from laneway.wire.messages import INTERNAL_ERROR, INVALID_PARAMS

IDENTITY_CONFLICT = -32001
SESSION_NOT_FOUND = -32002
SESSION_CLOSED = -32003
MAX_SESSIONS_EXCEEDED = -32004
CHILD_PROCESS_DEAD = -32005
REQUEST_TIMEOUT = -32006
INVALID_SESSION_PARAMS = -32007
AGENT_FILE_NOT_FOUND = -32008
IDENTITY_REQUIRED = -32009
BUDGET_SPENT = -32010
THREAD_IN_USE = -32011
NOT_LOGGED_IN = -32012

OURS = range(-32019, -31999)
"""Codes that MCP leaves to servers. A code of Codex's in here means something else and is not passed on."""


MAX_MESSAGE_CHARS = 4000
"""Of one message, which may repeat what a caller sent: a model reads it, and pays for it."""


def proxy_error(code: int, message: str, **data: Any) -> RemoteError:
    """An error that Laneway raises itself, not the engine."""
    return RemoteError(code, plain(message[:MAX_MESSAGE_CHARS]), {"error_source": "proxy", **data})


def wire_error(error: LanewayError, names: Names = AGENTS, **facts: Any) -> RemoteError:
    """The JSON-RPC error for `error`; `facts` are added to its `data`."""
    match error:
        case RemoteError():
            return error
        case IdentityTaken():
            return proxy_error(
                IDENTITY_CONFLICT,
                f"Identity conflict: '{error.identity}' is already bound to {names.agent_id} "
                f"'{error.agent_id}'. Use that session, close it, or ask for another identity.",
                identity=error.identity,
                **{f"conflicting_{names.agent_id}": error.agent_id},
                **facts,
            )
        case IdentityHeld():
            return proxy_error(
                IDENTITY_CONFLICT,
                f"Identity conflict: {error}",
                identity=error.identity,
                **{f"conflicting_{names.agent_id}": error.agent_id},
                holder_pid=error.pid,
                **facts,
            )
        case EngineRefused():
            child = {"code": error.code, "message": error.message}
            code = INTERNAL_ERROR if error.code in OURS or not error.code else error.code
            refusal = f"{error.engine} refused {error.method}: {plain(error.message)}."
            return RemoteError(
                code,
                f"{refusal} {error.remedy}".rstrip(),
                {"error_source": "child", "child_error": child, **facts},
            )
        case _:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL_ERROR)
            return proxy_error(code, _sentence(error, names), **_facts(error), **facts)


_CODES: tuple[tuple[type[LanewayError], int], ...] = (
    (BadCursor, INVALID_PARAMS),
    (TaskUnknown, INVALID_PARAMS),
    (SessionUnknown, SESSION_NOT_FOUND),
    (ThreadUnknown, SESSION_NOT_FOUND),
    (MemberForeign, IDENTITY_CONFLICT),
    (SessionClosed, SESSION_CLOSED),
    (BudgetSpent, BUDGET_SPENT),
    (LimitReached, MAX_SESSIONS_EXCEEDED),
    (NotLoggedIn, NOT_LOGGED_IN),
    (DiskFull, CHILD_PROCESS_DEAD),
    (EngineLost, CHILD_PROCESS_DEAD),
    (BinaryError, CHILD_PROCESS_DEAD),
    (SessionStuck, REQUEST_TIMEOUT),
    (BadName, INVALID_SESSION_PARAMS),
    (QuestionGone, INVALID_SESSION_PARAMS),
    (UsageError, INVALID_SESSION_PARAMS),
    (EngineCannot, INVALID_SESSION_PARAMS),
    (SettingError, INVALID_SESSION_PARAMS),
    (ActiveWriter, THREAD_IN_USE),
)


def _sentence(error: LanewayError, names: Names) -> str:
    match error:
        case SessionUnknown():
            return f"{error}. {names.sessions} lists all sessions."
        case EngineLost():
            can = "sessions can be resumed" if error.is_shared else "the session can be resumed"
            return f"{error}. {way_out_of(error.engine, can, is_shared=error.is_shared)}"
        case LimitReached():
            return f"{error}. Close a session first, or raise max_concurrent_threads."
        case _:
            return str(error)


def way_out_of(engine: str, can: str, *, is_shared: bool) -> str:
    """What to do after a process has died, where a caller has just been told so."""
    if is_shared:
        return f"Reconnect to this MCP server to start {engine} again; {can}."
    return f"Call codex-reply: {can}."


def _facts(error: LanewayError) -> dict[str, Any]:
    match error:
        case EngineLost():
            return {"exit": error.how, **({"last_words": error.last_words} if error.last_words else {})}
        case LimitReached():
            return {"what": error.what, "limit": error.limit}
        case BudgetSpent():
            return {"what": error.what, "limit": error.limit, "used": error.used}
        case ConfigRefused():
            return {"key": error.key}
        case MemberForeign():
            return {
                "identity": error.name,
                "member": error.agent,
                "team": error.team,
                "holder_pid": error.pid,
            }
        case _:
            return {}
