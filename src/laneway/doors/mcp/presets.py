"""Builds a `ThreadSpec` from a call's arguments, the role it names and the server's `SessionDefaults`.

Pure but for the files that a call or a setting names, which are read within bounds. A server
that was started read-only stays so, whatever a caller asks for: what a call may not set is refused
here, and what a resumed session had set before is left out where every thread is opened
(`laneway.codex.config_keys.narrowing`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import ConfigRefused
from laneway.base.foreign_files import NotRegular, TooLarge, read_regular
from laneway.base.plain import code_label
from laneway.core.overrides import KeyPath, leaves, merged, spelled
from laneway.core.ports import ThreadSpec
from laneway.doors.mcp.codes import AGENT_FILE_NOT_FOUND, INVALID_SESSION_PARAMS, proxy_error

if TYPE_CHECKING:
    from laneway.core.offers import ConfigRules

MAX_SHOWN_CHARS = 500
"""Of a path in a message: a model reads it, and pays for it."""
MAX_KEYS_NAMED = 5
"""Config keys named in one sentence; one is enough to know where they came from."""
MAX_FILE_BYTES = 256 * 1024
"""Of a prompt or instructions: more does not fit into a model's context beside its work."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a role; what is none here is left to the defaults."""

    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None


class SessionDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every session of this server, unless a call or its role says otherwise."""

    cwd: Path
    """The working folder of sessions whose call names none."""
    base_dir: Path
    """Where the server was started: relative paths in a call are relative to it."""
    model: str | None = None
    fast_model: str | None = None
    """The model where none is named; only with `--fast`."""
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None
    base_prompt_file: Path | None = None
    extra_instructions_file: Path | None = None
    contents: Mapping[Path, bytes] = {}
    """Contents of files that were read and checked already; those are not read again."""
    config: dict[str, Any] = {}
    roles: Mapping[str, Preset] = {}
    role: str | None = None
    """The role of calls that name none."""
    is_read_only: bool = False
    config_keys: str = "any"
    """`harmless`: a call may set only keys of Codex's config that start no program and widen no access."""
    rules: ConfigRules | None = None
    """Which keys those are, by the engine; without it none is harmless."""
    native: dict[str, Any] = {}
    backend: str | None = None
    """The key of the engine of calls that name none."""

    @property
    def is_narrow(self) -> bool:
        """Whether calls may set only harmless keys of Codex's config."""
        return self.is_read_only or self.config_keys == "harmless"


def spec_of(defaults: SessionDefaults, arguments: dict[str, Any]) -> ThreadSpec:
    """The thread that checked arguments ask for. Blocking where the settings name files."""
    role = role_of(defaults, arguments.get("role"))
    requested = merged(_older_parameters(arguments), arguments.get("config", {}))
    _check_config(defaults, requested)
    config = merged(defaults.config, requested)
    effort = role.reasoning_effort or defaults.reasoning_effort
    if effort is not None:
        config.setdefault("model_reasoning_effort", effort)
    return ThreadSpec(
        cwd=folder_of(defaults, arguments),
        backend=arguments.get("engine") or defaults.backend,
        model=arguments.get("model") or role.model or defaults.model or defaults.fast_model,
        sandbox=_sandbox(defaults, arguments.get("sandbox") or role.sandbox),
        approval_policy=arguments.get("approval-policy") or role.approval_policy or defaults.approval_policy,
        base_instructions=arguments.get("base-instructions") or _text_of(defaults, defaults.base_prompt_file),
        developer_instructions=_joined(
            arguments.get("developer-instructions"), _text_of(defaults, defaults.extra_instructions_file)
        ),
        config=config,
        native=defaults.native,
    )


_FIELDS = {
    "cwd": "cwd",
    "model": "model",
    "sandbox": "sandbox",
    "approval-policy": "approval_policy",
    "base-instructions": "base_instructions",
    "developer-instructions": "developer_instructions",
    "config": "config",
    "compact-prompt": "config",
    "profile": "config",
    "include-plan-tool": "config",
    "role": "role",
}


def changes_of(defaults: SessionDefaults, arguments: dict[str, Any]) -> dict[str, Any]:
    """The `ThreadSpec` fields that checked arguments change in a resumed session. Blocking like `spec_of`."""
    spec = spec_of(defaults, arguments)
    fields = {_FIELDS[name] for name in arguments if name in _FIELDS}
    if "role" in fields:
        fields = (fields - {"role"}) | {"model", "sandbox", "approval_policy", "config"}
    return {field: getattr(spec, field) for field in fields if getattr(spec, field) is not None}


def folder_of(defaults: SessionDefaults, arguments: dict[str, Any]) -> Path:
    cwd = arguments.get("cwd")
    return defaults.base_dir / expanded(cwd) if cwd else defaults.cwd


def expanded(path: str) -> Path:
    """With `~` expanded; where there is no home, `~` is a name like any other."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def check_folder(folder: Path) -> None:
    """Raise -32007 if the folder does not exist: Codex would start there all the same."""
    if not os.path.isdir(folder):
        raise proxy_error(
            INVALID_SESSION_PARAMS, f"There is no folder {_path_label(folder)}: cwd must name one."
        )


def _path_label(path: Path) -> str:
    return code_label(str(path), MAX_SHOWN_CHARS)


def role_of(defaults: SessionDefaults, requested: str | None) -> Preset:
    name = requested or defaults.role
    if name is None:
        return Preset()
    if name not in defaults.roles:
        known = ", ".join(sorted(defaults.roles)) or "none is configured"
        raise proxy_error(
            INVALID_SESSION_PARAMS, f"There is no role '{code_label(name)}' ({known}).", role=name
        )
    return defaults.roles[name]


def _check_config(defaults: SessionDefaults, config: dict[str, Any]) -> None:
    """Refuse a call's config with keys that this server does not let calls set."""
    forbidden = forbidden_keys(defaults, config)
    if not forbidden:
        return
    key = spelled(forbidden[0])
    if defaults.is_read_only:
        raise ConfigRefused(
            key,
            f"This server was started with --readonly: a call may not set {key} in its config, "
            "only what starts no program and widens no access.",
        )
    raise ConfigRefused(
        key,
        f"A call may not set {key} in its config: the setting config_keys allows only what starts "
        "no program and widens no access.",
    )


def forbidden_keys(defaults: SessionDefaults, config: Mapping[str, Any]) -> list[KeyPath]:
    """Keys that a session of this server may not have in its config; the server's own flags may set them."""
    if not defaults.is_narrow:
        return []
    if defaults.rules is None:
        return [path for path, _ in leaves(merged(config))]
    return defaults.rules.forbidden(config, defaults.config)


def left_out_notes(defaults: SessionDefaults, config: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence that names what was left out of a resumed session's config; none if nothing was."""
    keys = list(dict.fromkeys(spelled(path[:2]) for path in forbidden_keys(defaults, config)))
    if not keys:
        return ()
    why = "this server was started with --readonly" if defaults.is_read_only else "config_keys forbids it"
    more = len(keys) - MAX_KEYS_NAMED
    names = ", ".join(keys[:MAX_KEYS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return (f"Left out of the session's config, because {why}: {names}",)


def _sandbox(defaults: SessionDefaults, requested: str | None) -> str | None:
    if not defaults.is_read_only:
        return requested or defaults.sandbox
    if requested not in (None, "read-only"):
        raise proxy_error(
            INVALID_SESSION_PARAMS,
            f"This server was started with --readonly: a session with {requested} access cannot be started.",
            sandbox=requested,
        )
    return "read-only"


_CONFIG_KEYS = {
    "compact-prompt": "compact_prompt",
    "profile": "profile",
    "include-plan-tool": "tools.update_plan.enabled",
}
"""Parameters of the old tools that are plain config today."""


def _older_parameters(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: arguments[name] for name, key in _CONFIG_KEYS.items() if arguments.get(name) is not None}


def _joined(*texts: str | None) -> str | None:
    return "\n\n".join(text for text in texts if text) or None


def _text_of(defaults: SessionDefaults, path: Path | None) -> str | None:
    return None if path is None else read_text(path, "prompt file", defaults.contents.get(path))


def read_text(path: Path, what: str, content: bytes | None = None) -> str:
    """The text of a file; raises -32008 if it cannot be read. `content` is its bytes, if read already.

    Blocking, for as long as the disk takes.
    """

    def refused(why: str) -> Exception:
        return proxy_error(
            AGENT_FILE_NOT_FOUND, f"The {what} {_path_label(path)} {why}.", path=_path_label(path)
        )

    try:
        data = read_regular(path, MAX_FILE_BYTES) if content is None else content
    except FileNotFoundError as problem:
        raise refused("does not exist") from problem
    except NotRegular as problem:
        raise refused("is not a file") from problem
    except TooLarge as problem:
        raise refused(f"is longer than {MAX_FILE_BYTES} bytes") from problem
    except OSError as problem:
        raise refused(f"cannot be read: {problem.strerror}") from problem
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise refused("is not UTF-8 text") from problem
