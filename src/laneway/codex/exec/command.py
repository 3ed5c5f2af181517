"""The command line of one worker: `codex exec --json … -`, for a new thread or one that goes on.

Pure. The prompt goes to standard input and never into the words. What was seen of the real Codex:

- `--disable NAME` ends a version that does not know the name (0.104 to 0.169), `-c features.NAME=false`
  ends none, so features are switched off like that.
- A second `-c mcp_servers={…}` replaces the first one, so all servers are in one.
- Disabling a server that is not configured ends Codex ("invalid transport"), unless a transport comes along.
- `resume` takes no sandbox and no folder behind it; before it they hold for the resumed thread, too.
- `resume NAME` silently starts a new thread where no thread has that name: only ids are let through.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]

NO_RECURSION = ("multi_agent", "multi_agent_v2", "goals")
"""Features by which a worker would get workers of its own, or go on after its turn."""
NOBODY = "http://127.0.0.1:9/"
"""In place of the address of a disabled server: everybody may read a process's words."""
UNTRUSTED = '{trust_level="untrusted"}'
_THREAD_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


class ServerOff(msgspec.Struct, frozen=True):
    """An MCP server that a worker must not start."""

    name: str
    has_url: bool = False
    """Whether it is reached by a URL; else it is started by a command."""


class WorkerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides about the words of one `codex exec`."""

    binary: str
    cwd: str
    """Absolute."""
    sandbox: SandboxMode = "read-only"
    model: str | None = None
    effort: str | None = None
    schema_file: str | None = None
    thread_id: str | None = None
    """The thread to go on with."""
    untrusted: tuple[str, ...] = ()
    """Folders that Codex would write down as trusted: see `laneway.codex.exec.config`."""
    servers_off: tuple[ServerOff, ...] = ()
    extra: tuple[str, ...] = ()
    """More options of `codex exec`, such as `--add-dir`; none that sets config."""


def argv(command: WorkerCommand) -> list[str]:
    """The words. Raises `ValueError` for what Codex would take for something else without a word."""
    _check(command)
    words = [command.binary, "exec", "--json", "--skip-git-repo-check"]
    words += ["-C", command.cwd, "-s", command.sandbox]
    for setting in _settings(command):
        words += ["-c", setting]
    if command.model:
        words.append(f"--model={command.model}")
    if command.schema_file:
        words.append(f"--output-schema={command.schema_file}")
    words += command.extra
    if command.thread_id is not None:
        words += ["resume", command.thread_id.lower()]  # 0.104 looks for it letter by letter
    return [*words, "-"]


def is_thread_id(text: str) -> bool:
    return _THREAD_ID.fullmatch(text) is not None


def _settings(command: WorkerCommand) -> Iterable[str]:
    yield 'approval_policy="never"'
    for feature in NO_RECURSION:
        yield f"features.{feature}=false"
    if command.effort:
        yield f"model_reasoning_effort={toml_string(command.effort)}"
    if command.untrusted:
        yield f"projects={_table(dict.fromkeys(command.untrusted, UNTRUSTED))}"
    if command.servers_off:
        yield f"mcp_servers={_table({off.name: _off(off) for off in command.servers_off})}"


def _off(server: ServerOff) -> str:
    transport = f'url="{NOBODY}"' if server.has_url else 'command="false"'
    return f"{{{transport},enabled=false}}"


def _table(values: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{toml_string(key)}={value}" for key, value in values.items()) + "}"


def toml_string(text: str) -> str:
    """A basic string of TOML. Bytes of a path that are no UTF-8 come out as Codex writes them."""
    visible = os.fsencode(text).decode("utf-8", "replace")
    return json.dumps(visible, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check(command: WorkerCommand) -> None:
    for name, path in (("cwd", command.cwd), ("schema_file", command.schema_file)):
        if path is not None and not os.path.isabs(path):
            raise ValueError(f"{name} is not absolute")
    if command.thread_id is not None and not is_thread_id(command.thread_id):
        raise ValueError("thread_id is not the id of a thread")
    if any(word.startswith(("-c", "--config")) for word in command.extra):
        raise ValueError("extra would replace what protects the user's config")
