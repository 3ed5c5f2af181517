"""Names, descriptions and schemas of the job tools. Every word costs every session tokens.

Separate from `tools`, which loads all of jobs: a server that is only asked for its tool list loads this.
"""

from __future__ import annotations

from typing import Any

from laneway.core.tool_schema import ToolSchema

STATUS_WITHOUT_JOB = "Without jobId: the health of this server."


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_JOB = {"type": "string", "description": "A jobId of codex_spawn."}
_JOBS = {"type": "array", "items": _TEXT, "description": "jobIds; all unfinished ones if omitted."}
_FLAG = {"type": "boolean"}

_SPAWN = _object(
    {
        "prompt": {"type": "string", "description": "The whole task: the worker sees nothing else."},
        "cwd": {"type": "string", "description": "Folder; default: the server's."},
        "sandbox": {
            "type": "string",
            "enum": ["read-only", "workspace-write", "danger-full-access"],
            "description": "Default read-only.",
        },
        "model": _TEXT,
        "effort": _TEXT,
        "outputSchema": {"type": "object", "description": "JSON Schema of the final message."},
        "timeoutMs": {"type": "integer", "description": "Default 1 hour."},
        "stallMs": {"type": "integer", "description": "Without any progress; default 15 minutes."},
        "scope": {
            "type": "array",
            "items": _TEXT,
            "description": "Paths or globs that it will edit, from the root of the repository."
            " Jobs with intersecting scopes run one by one.",
        },
        "priority": {"type": "integer", "description": "Higher starts first; default 0."},
        "retries": {"type": "integer", "description": "After a failure, its edits taken back; default 0."},
        "isolation": {
            "type": "string",
            "enum": ["shared", "overlay", "worktree"],
            "description": "Default shared: all jobs edit the same work tree.",
        },
        "tags": {"type": "array", "items": _TEXT},
        "tokenBudget": {"type": "integer", "description": "The job is stopped when it has used more."},
        "run": {"type": "string", "description": "The open run of this tree, to be sure of it."},
        "requireClean": {"type": "boolean", "description": "Refuse a tree with uncommitted changes."},
        "overlap": {
            "type": "string",
            "enum": ["queue", "allow"],
            "description": "What to do about intersecting scopes; default queue.",
        },
        "node": {
            "type": "string",
            "description": "A machine of the user's settings, any, or local (default).",
        },
    },
    "prompt",
)

_EVENTS = _object(
    {
        "jobId": _JOB,
        "cursor": {"type": "string", "description": "nextCursor of the last answer."},
        "types": {
            "type": "array",
            "items": {
                "type": "string",
                "enum": ["message", "progress", "tool_call", "tool_result", "error", "final"],
            },
        },
        "maxEvents": {"type": "integer", "minimum": 1},
        "full": {"type": "boolean", "description": "Contents over 4 KiB whole."},
    },
    "jobId",
)

_WAIT = _object(
    {
        "jobIds": _JOBS,
        "cursor": {
            "type": "string",
            "description": "nextCursor of the last wait: each job is reported once.",
        },
        "timeoutMs": {"type": "integer", "minimum": 0, "description": "Default 45000, at most 240000."},
    }
)

_LIST = _object(
    {
        "status": {"type": "string", "description": "One status, or unfinished."},
        "tag": _TEXT,
        "run": _TEXT,
        "limit": {"type": "integer", "minimum": 1},
        "cursor": _TEXT,
    }
)

_RESOLVE = _object(
    {
        "action": {"type": "string", "enum": ["show", "accept", "rollback", "rerun", "undo"]},
        "run": {"type": "string", "description": "Default: the open run of cwd."},
        "cwd": _TEXT,
        "jobIds": {"type": "array", "items": _TEXT, "description": "Only these jobs of the run."},
        "paths": {"type": "array", "items": _TEXT, "description": "show: only these."},
        "resolved": {
            "type": "array",
            "items": _TEXT,
            "description": "accept: conflicts merged by hand. rollback: despite others' part.",
        },
        "merge": {"type": "boolean", "description": "rollback: reverse merge paths that changed since."},
        "rollbackId": {"type": "string", "description": "undo: which rollback; default the last."},
    },
    "action",
)

SPAWN = ToolSchema(
    "codex_spawn",
    "Start a background job",
    "Start a Codex worker in the background and return its jobId at once. Up to 8 read-only and 2 writing "
    "workers run side by side, the rest is queued. Workers share one work tree and make no commits; edits "
    "are tracked by git snapshots: codex_resolve shows conflicts and rolls back.",
    _SPAWN,
)
STATUS = ToolSchema(
    "codex_status",
    "Status of a job",
    "Where a job stands, in a few words.",
    _object({"jobId": _JOB}, "jobId"),
    True,
)
RESULT = ToolSchema(
    "codex_result",
    "Result of a job",
    "What a job produced: last message, structured output, modified files with the evidence for each, "
    "conflicts, tokens, error. Partial while it runs.",
    _object({"jobId": _JOB}, "jobId"),
    True,
)
CANCEL = ToolSchema(
    "codex_cancel",
    "Cancel a job",
    "Ask a job to end, or kill it with force. Check its edits with codex_resolve afterwards.",
    _object({"jobId": _JOB, "force": _FLAG}, "jobId"),
)
EVENTS = ToolSchema(
    "codex_events",
    "Events of a job",
    "What a job did since a cursor: messages, tool calls and results, errors. `done` when there is no more.",
    _EVENTS,
    True,
)
WAIT_ANY = ToolSchema(
    "codex_wait_any",
    "Wait for any job",
    "Wait until one of these jobs has ended, and return it; call again with nextCursor for the next one.",
    _WAIT,
    True,
)
WAIT_ALL = ToolSchema(
    "codex_wait_all", "Wait for all jobs", "Wait until all of these jobs have ended.", _WAIT, True
)
LIST = ToolSchema("codex_list", "List jobs", "Jobs, newest first, with slots in use and tokens.", _LIST, True)
SEND = ToolSchema(
    "codex_send",
    "Continue a job",
    "Send a follow-up to the thread of a job: a new job, queued behind it if it still runs.",
    _object({"jobId": _JOB, "prompt": _TEXT}, "jobId", "prompt"),
)
RESOLVE = ToolSchema(
    "codex_resolve",
    "Resolve the edits of jobs",
    "What the writing jobs of one run did to the work tree: show it with conflicts as three-way diffs, "
    "accept it, roll back jobs or the whole run, rerun them one after the other, or undo a rollback.",
    _RESOLVE,
)
ALL = (SPAWN, STATUS, RESULT, CANCEL, EVENTS, WAIT_ANY, WAIT_ALL, LIST, SEND, RESOLVE)
NAMES = tuple(tool.name for tool in ALL)
