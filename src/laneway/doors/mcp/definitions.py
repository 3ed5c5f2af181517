"""Definitions of the tools and prompts of `laneway mcp` as clients list them, in groups that can be left out.

Clients with many tools show their model only names and descriptions until it searches for one, so
those say what a tool is for. Every word here costs every client tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from laneway import __version__
from laneway.core.tool_schema import ToolSchema
from laneway.doors.mcp.names import Names
from laneway.doors.mcp.schemas import CODEX_PROPERTIES, REPLY_PROPERTIES
from laneway.doors.mcp.server_info import ServerInfo
from laneway.jobs import tool_schemas as job_tools
from laneway.mail.tool_schemas import ALL

if TYPE_CHECKING:
    from laneway.core.tools import Tool

SESSIONS_A_PAGE = 20
"""Of `agent_sessions` by default: some 12 kB for a model to read."""
MAX_SESSIONS_A_PAGE = 100

TASK_TOOLS = frozenset({job_tools.WAIT_ANY.name, job_tools.WAIT_ALL.name})
"""Tools whose calls may be answered by a task."""
ORCHESTRATE: dict[str, Any] = {
    "name": "orchestrate",
    "title": "Orchestrate Codex workers",
    "description": (
        "How to split a task among background Codex workers: dispatch, wait, collect, resolve conflicts."
    ),
}
"""The prompt of `job_instructions`. It takes no arguments: what a person types behind the name of a prompt,
clients cut at every space."""
_TEXT = {"type": "string"}


def server_info(names: Names, groups: Collection[str], backends: Sequence[str] = ()) -> ServerInfo:
    """What clients are told before any tool can run. `backends` are the keys of the engines."""
    return ServerInfo(
        info={"name": names.server, "title": names.title, "version": __version__},
        tools=tuple(definitions(names, groups, backends)),
        has_resources=True,
        has_subscriptions="mail" in groups,
        prompts=(ORCHESTRATE,) if "jobs" in groups else (),
        task_tools=TASK_TOOLS if "jobs" in groups else frozenset(),
    )


def definitions(names: Names, groups: Collection[str], backends: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The tools of these groups; known before their handlers are loaded."""
    tools: list[dict[str, Any]] = []
    if "codex" in groups:
        has_mail = "mail" in groups
        codex = _codex(names, has_mail=has_mail, backends=backends)
        tools += [codex, _reply(names, has_mail=has_mail), _answer(names)]
    if "sessions" in groups:
        tools += [_sessions(names), _status(names), _close(names)]
    if "mail" in groups:
        tools += [definition(words, of_caller(names)) for words in ALL]
    if "jobs" in groups:
        tools = with_jobs(tools)
    return tools


def with_jobs(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """These tools and those of the group `jobs`. `codex-mcp` has a `codex_status`, which serves both then."""
    jobs = [definition(schema, {}) for schema in job_tools.ALL]
    for position, health in enumerate(tools):
        job = next((each for each in jobs if each["name"] == health["name"]), None)
        if job is not None:
            jobs.remove(job)
            schema = {key: value for key, value in job["inputSchema"].items() if key != "required"}
            text = f"{job['description']} {job_tools.STATUS_WITHOUT_JOB}"
            tools[position] = {**health, "description": text, "inputSchema": schema}
    return [*tools, *jobs]


def _output(names: Names) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "threadId": _TEXT,
            "content": _TEXT,
            names.agent_id: _TEXT,
            "identity": _TEXT,
            "status": {"type": "string", "description": "`input_required` while a question is open."},
            "question": {"type": "object"},
        },
        "required": ["threadId", "content", names.agent_id],
    }


_AUTO_MAIL = {
    "auto_mail": {"description": "Whether team mail may start turns of this session.", "type": "boolean"}
}


def _codex(names: Names, *, has_mail: bool, backends: Sequence[str]) -> dict[str, Any]:
    ours: dict[str, dict[str, Any]] = {
        "identity": {
            "description": "A name for the session, unique while it lives. Default: `codex`, `codex-2` …",
            "type": "string",
        },
        "agent_file": {
            "description": "A file whose text is the prompt, e.g. `.claude/agents/dev.md`. Not with prompt.",
            "type": "string",
        },
        names.agent_id: {
            "description": "Resume this session, also a closed one; prompt is optional then.",
            "type": "string",
        },
        "role": {"description": "A preset of the configuration.", "type": "string"},
        "tag": {"description": "A label for your own order.", "type": "string"},
    }
    if len(backends) > 1:
        ours["engine"] = {
            "description": "Which agent works: Codex, or another with the same tools around it.",
            "type": "string",
            "enum": list(backends),
        }
    return {
        "name": "codex",
        "title": "Codex",
        "description": (
            "Start a session of Codex, OpenAI's coding agent, on a task: it reads and edits files and runs "
            f"commands in cwd. Returns its final message and an {names.agent_id} for codex-reply. Sessions "
            "run side by side."
        ),
        "inputSchema": {
            "additionalProperties": False,
            "properties": {**CODEX_PROPERTIES, **ours, **(_AUTO_MAIL if has_mail else {})},
            "type": "object",
        },
        "outputSchema": _output(names),
    }


def _reply(names: Names, *, has_mail: bool) -> dict[str, Any]:
    properties = {
        names.agent_id: {"description": "The session.", "type": "string"},
        **REPLY_PROPERTIES,
        "threadId": {"description": f"The session's thread, instead of {names.agent_id}.", "type": "string"},
        **(_AUTO_MAIL if has_mail else {}),
    }
    return {
        "name": "codex-reply",
        "title": "Codex Reply",
        "description": f"Continue a Codex session: its next prompt, by {names.agent_id} or threadId.",
        "inputSchema": {"properties": properties, "required": ["prompt"], "type": "object"},
        "outputSchema": _output(names),
    }


def _answer(names: Names) -> dict[str, Any]:
    return {
        "name": names.answer,
        "title": "Answer Codex",
        "description": "Decide a question that a Codex call returned as input_required, or that "
        f"{names.status} lists; the turn goes on.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "question_id": _TEXT,
                "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
                "content": {"type": "object", "description": "Values for the question's form."},
            },
            "required": ["question_id", "action"],
        },
        "outputSchema": _output(names),
    }


def _sessions(names: Names) -> dict[str, Any]:
    return {
        "name": names.sessions,
        "title": "Codex sessions",
        "description": "List Codex sessions of the team, live ones first, then the latest: who, where.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "identity": {"type": "string", "description": "Only this identity's."},
                "include_closed": {"type": "boolean", "description": "Default true."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_SESSIONS_A_PAGE,
                    "description": f"Default {SESSIONS_A_PAGE}.",
                },
                "cursor": {"type": "string", "description": "`nextCursor` of the page before."},
            },
        },
        "annotations": {"readOnlyHint": True},
    }


def _status(names: Names) -> dict[str, Any]:
    return {
        "name": names.status,
        "title": "Codex status",
        "description": "Health: whether Codex runs, uptime, active sessions by identity, unread mail, "
        "questions that wait for an answer.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }


def _close(names: Names) -> dict[str, Any]:
    return {
        "name": names.close,
        "title": "Close a Codex session",
        "description": "End a Codex session and free its identity; a busy one is stopped and sums up first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                names.agent_id: {"type": "string", "description": "The session, or:"},
                "identity": {"type": "string", "description": "whose."},
            },
        },
        "annotations": {"idempotentHint": True},
    }


def definition(tool: Tool | ToolSchema, properties: dict[str, Any]) -> dict[str, Any]:
    """The definition of a tool of `core.tools`; `properties` are the arguments that name its caller."""
    schema = {**tool.schema, "properties": {**tool.schema.get("properties", {}), **properties}}
    tool_json = {"name": tool.name, "description": tool.description, "inputSchema": schema}
    if tool.title:
        tool_json["title"] = tool.title
    if tool.is_read_only:
        tool_json["annotations"] = {"readOnlyHint": True}
    return tool_json


def of_caller(names: Names) -> dict[str, Any]:
    """The arguments by which a client names the identity that it calls as (`acting_identity`)."""
    return {
        "identity": {"type": "string", "description": "In whose name: this, or:"},
        names.agent_id: {"type": "string", "description": "of this session."},
    }
