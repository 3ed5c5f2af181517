"""Transcripts and summaries of sessions as MCP resources, so that a client can read what happened.

    laneway://sessions/<agent id>/transcript     Markdown, newest turns; `?older=<cursor>` for earlier ones
    laneway://sessions/<agent id>/summary        the session's own summary, written when it was closed

Transcripts are Codex's own files and are read only on request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from laneway.base.errors import LanewayError, RemoteError
from laneway.base.plain import code_label, fenced, plain, quoted
from laneway.core.model import Activity, Event, Text, TurnDone, UserSaid
from laneway.core.named.sessions import NamedSessions
from laneway.doors.mcp.codes import wire_error
from laneway.doors.mcp.server import Call
from laneway.wire.messages import INVALID_PARAMS

SCHEME = "laneway"
SESSIONS_A_PAGE = 100
"""Of the list of resources, where each session has one or two."""
TURNS_A_PAGE = 20
MAX_CHARS = 200_000
"""Of one page: a model reads it, and pays for it."""
OUTPUT_CHARS = 2_000
"""Of one command's output: its end, where the results are."""
MARKDOWN = "text/markdown"


class Transcripts:
    """A `Resources` over the sessions of a team."""

    def __init__(self, sessions: NamedSessions) -> None:
        self._sessions = sessions

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        try:
            page = await self._sessions.sessions(call.principal, limit=SESSIONS_A_PAGE, cursor=cursor)
        except LanewayError as error:
            raise wire_error(error) from error
        resources = []
        for row in page.rows:
            if row.thread_id is not None:
                resources.append(_resource(row.agent_id, row.identity, "transcript"))
                if row.status != "active":
                    resources.append(_resource(row.agent_id, row.identity, "summary"))
        return resources, page.cursor

    def templates(self) -> list[dict[str, Any]]:
        return [
            {
                "uriTemplate": f"{SCHEME}://sessions/{{agent_id}}/{what}",
                "name": what,
                "title": f"The {what} of a session",
                "mimeType": MARKDOWN,
            }
            for what in ("transcript", "summary")
        ]

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]:
        agent_id, what, older = _parsed(uri)
        try:
            text = await (
                self._transcript(call, agent_id, older, uri)
                if what == "transcript"
                else self._summary(call, agent_id, uri)
            )
        except RemoteError:
            raise
        except LanewayError as error:
            raise wire_error(error) from error
        return [{"uri": uri, "mimeType": MARKDOWN, "text": text}]

    async def _transcript(self, call: Call, agent_id: str, older: str | None, uri: str) -> str:
        record = await self._sessions.seen(call.principal, agent_id)
        if record.thread_id is None:
            raise _missing(uri)
        engine = self._sessions.hub.engines.get(record.backend)
        page = await engine.history(record.thread_id, older, TURNS_A_PAGE)
        text = markdown(page.events, engine.name)
        if len(text) > MAX_CHARS:
            text = f"[cut: {len(text) - MAX_CHARS} characters]\n" + text[-MAX_CHARS:]
        if page.older is not None:
            text = f"Earlier: {uri.partition('?')[0]}?older={quote(page.older, safe='')}\n\n{text}"
        return text

    async def _summary(self, call: Call, agent_id: str, uri: str) -> str:
        await self._sessions.seen(call.principal, agent_id)
        text = await self._sessions.summary(agent_id)
        if text is None:
            raise _missing(uri)
        return text


def markdown(events: Iterable[Event], engine: str) -> str:
    """Turns as Markdown for people; `engine` is the name of who speaks. Pure."""
    parts: list[str] = []
    open_item_id = ""
    for event in events:
        if isinstance(event, Text) and event.item_id == open_item_id:
            parts[-1] += event.text
            continue
        part = _event_markdown(event, engine)
        if part:
            parts.append(part)
            open_item_id = event.item_id if isinstance(event, Text) else ""
    return "\n\n".join(parts) + "\n" if parts else "Nothing was said yet.\n"


def _event_markdown(event: Event, engine: str) -> str:
    match event:
        case UserSaid(text=text):
            return f"## Prompt\n\n{text}"
        case Text(text=text):
            return f"## {engine}\n\n{text}"
        case Activity():
            return _activity(event)
        case TurnDone(status="failed", failure=failure):
            return f"*The turn failed: {plain(failure.message) if failure else 'no reason given'}*"
        case TurnDone(status="interrupted"):
            return "*The turn was interrupted.*"
        case _:
            return ""


def _activity(event: Activity) -> str:
    code = f" (exit code {event.exit_code})" if event.exit_code else ""
    part = f"- {event.kind}: {quoted(event.title)} {event.status}{code}"
    if event.output:
        cut = "…" if len(event.output) > OUTPUT_CHARS else ""
        text = cut + event.output[-OUTPUT_CHARS:].rstrip("\n")
        part += f"\n\n{fenced(text)}"
    return part


def _resource(agent_id: str, identity: str, what: str) -> dict[str, Any]:
    return {
        "uri": f"{SCHEME}://sessions/{quote(agent_id, safe='')}/{what}",
        "name": f"{code_label(identity)}-{what}",
        "title": f"The {what} of {code_label(identity)} ({code_label(agent_id)})",
        "mimeType": MARKDOWN,
    }


def _parsed(uri: str) -> tuple[str, str, str | None]:
    """A URI's session, kind of resource and page; raises -32602 for a URI that is not ours."""
    try:
        parts = urlsplit(uri)
        path = [unquote(part) for part in parts.path.split("/")]
        older = parse_qs(parts.query).get("older", [None])[0]
    except ValueError as problem:
        raise _missing(uri) from problem
    is_ours = parts.scheme == SCHEME and parts.netloc == "sessions" and len(path) == 3
    if not is_ours or not path[1] or path[2] not in ("transcript", "summary"):
        raise _missing(uri)
    return path[1], path[2], older


def _missing(uri: str) -> RemoteError:
    return RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
