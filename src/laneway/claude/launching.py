"""What one Claude Code is started with: its command line, and its handshake.

The command line is visible to all users of the machine, and is bounded: long texts go into the
handshake. Values are bound by `=`, so that none is taken for an option. Pure.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineCannot
from laneway.base.plain import code_label
from laneway.claude.access import ClaudeAccess, access_of
from laneway.core.ports import ThreadSpec

SERVER = "laneway"
"""Our own tools, as an MCP server whose messages come through the pipe."""
EFFORT = "model_reasoning_effort"
"""The one key of Codex's config that has an equivalent here."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""Those of Claude Code, which takes no notice of any other."""
_NEAREST_EFFORT = {"none": "low", "minimal": "low"}
"""For Codex's own."""
USER_SOURCES = ("user",)
ALL_SOURCES = ("user", "project", "local")

Begin: TypeAlias = Literal["start", "resume", "fork"]

_STREAMING = (
    "-p",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--replay-user-messages",
    "--forward-subagent-text",
    "--permission-prompt-tool=stdio",
)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the life of one process; another value needs another process."""

    access: ClaudeAccess
    sources: tuple[str, ...] = USER_SOURCES
    """Whose settings are read."""
    model: str | None = None
    effort: str | None = None
    output_schema: Any = None
    folders: tuple[str, ...] = ()
    """Further folders of the workspace."""
    system_prompt: str | None = None
    appended: str | None = None
    """An addition to the system prompt."""
    has_tools: bool = False
    is_ephemeral: bool = False


def launch_of(spec: ThreadSpec) -> Launch:
    """Raises `EngineCannot` for what Claude Code has no equivalent of."""
    config = {key: value for key, value in spec.config.items() if key != EFFORT}
    if config:
        raise EngineCannot(CLAUDE, f"take Codex's config ({', '.join(sorted(config))})", "Leave it out.")
    effort = spec.config.get(EFFORT)
    return Launch(
        access=access_of(spec.sandbox, spec.approval_policy),
        model=spec.model,
        effort=effort_of(effort),
        folders=(*spec.writable_roots, *spec.directories),
        system_prompt=spec.base_instructions,
        appended=spec.developer_instructions,
        has_tools=bool(spec.tools),
        is_ephemeral=spec.ephemeral,
    )


def effort_of(asked: Any) -> str | None:
    """The effort to think with; raises `EngineCannot` for one that there is not."""
    if asked is None:
        return None
    effort = _NEAREST_EFFORT.get(str(asked), str(asked))
    if effort not in EFFORTS:
        what = f"think with the effort {code_label(effort)}"
        raise EngineCannot(CLAUDE, what, f"Take {', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}.")
    return effort


def arguments(launch: Launch, begin: Begin, thread_id: str, original_id: str | None = None) -> list[str]:
    """The command line, without the program. `original_id`: the session that a fork copies."""
    words = [*_STREAMING, f"--setting-sources={','.join(launch.sources)}"]
    match begin:
        case "start":
            words.append(f"--session-id={thread_id}")
        case "resume":
            words.append(f"--resume={thread_id}")
        case "fork":
            words += [f"--resume={original_id}", "--fork-session", f"--session-id={thread_id}"]
    if launch.model is not None:
        words.append(f"--model={launch.model}")
    if launch.effort is not None:
        words.append(f"--effort={launch.effort}")
    if launch.access.mode is not None:
        words.append(f"--permission-mode={launch.access.mode}")
    if launch.access.tools is not None:
        # Of the servers only ours: what the user's own do is not known.
        words += [f"--tools={','.join(launch.access.tools)}", "--strict-mcp-config"]
        words.append("--disable-slash-commands")
    if launch.has_tools:
        servers = {SERVER: {"type": "sdk", "name": SERVER, "alwaysLoad": True}}
        words.append(f"--mcp-config={_json({'mcpServers': servers})}")
        words.append(f"--allowedTools=mcp__{SERVER}")
    if launch.is_ephemeral:
        words.append("--no-session-persistence")
    for folder in launch.folders:
        words.append(f"--add-dir={folder}")
    return words


def initialize(launch: Launch) -> dict[str, Any]:
    """The fields of the handshake."""
    fields = {
        "systemPrompt": launch.system_prompt,
        "appendSystemPrompt": launch.appended,
        "jsonSchema": launch.output_schema,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
