"""Finds the Claude Code binary: flag, environment, setting, PATH, then the PyPI package `laneway[claude]`.

That package is the Claude Agent SDK, which brings the binary; the SDK itself is never imported, because
that takes most of a second. Also composes the environment of Claude Code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from laneway.base.programs import Binary, Program, child_environment, find_program

ENVIRONMENT_KEY = "LANEWAY_CLAUDE_BIN"
OUTER = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
    }
)
"""Set by a Claude Code for what runs inside of it, as we may; another Claude Code must not see them."""
OURS = {
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""Asks for `session_state_changed`; and a version that is in use must not replace itself."""


def find(
    flag: str | None = None, configured: str | None = None, environment: Mapping[str, str] | None = None
) -> Binary:
    """The Claude Code to use. Raises `BinaryError`, whose text says what to do."""
    return find_program(CLAUDE_CODE, flag, configured, os.environ if environment is None else environment)


def _bundled() -> str | None:
    """The binary in the SDK's folder, which is looked up without importing the SDK."""
    from importlib.util import find_spec

    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = os.path.join(os.path.dirname(spec.origin), "_bundled", "claude")
    return path if os.path.isfile(path) else None


CLAUDE_CODE = Program(
    title="Claude Code",
    command="claude",
    flag="--claude-bin",
    variable=ENVIRONMENT_KEY,
    older_variable="",
    setting="claude_bin",
    extra="claude",
    bundled=_bundled,
)


def claude_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Claude Code that we start."""
    inherited = {key: value for key, value in child_environment(environment).items() if key not in OUTER}
    return inherited | OURS


def config_home(environment: Mapping[str, str]) -> str:
    """The folder in which a Claude Code with this environment keeps its sessions and settings."""
    home = environment.get("HOME") or os.path.expanduser("~")
    return os.path.realpath(environment.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"))
