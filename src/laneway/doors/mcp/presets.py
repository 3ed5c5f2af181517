"""From what a caller asks for to how a thread is started: arguments, then role, then settings.

Pure but for the files that a call or a setting names, which are read within bounds. A server
that was started read-only stays so, whatever a caller asks for: what a call may not ask for is refused
here, and what a session brings from before is left out where every thread is opened (`narrowing`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import ConfigRefused
from laneway.base.foreign_files import NotRegular, TooLarge, read_regular
from laneway.base.plain import code_label
from laneway.codex import config_keys
from laneway.codex.overrides import KeyPath, merged, spelled
from laneway.core.hub import Equip
from laneway.core.ports import ThreadSpec
from laneway.doors.mcp.codes import AGENT_FILE_NOT_FOUND, INVALID_SESSION_PARAMS, proxy_error

MAX_SHOWN_CHARS = 500
"""Of a path in a message: a model reads it, and pays for it."""
MAX_KEYS_NAMED = 5
"""Of a config in a sentence; one is enough to know where it came from."""
MAX_FILE_BYTES = 256 * 1024
"""Of a prompt or instructions: more than this does not fit a model's head beside its work."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A role: what it leaves open stays as it was."""

    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None


class House(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for every session of this server, unless a call or its role says otherwise."""

    cwd: Path
    """Where sessions work whose call does not say."""
    here: Path
    """Where we were started: what relative paths in a call are relative to."""
    model: str | None = None
    fast_model: str | None = None
    """Taken where nobody names a model; only with `--fast`."""
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None
    base_prompt_file: Path | None = None
    extra_instructions_file: Path | None = None
    contents: Mapping[Path, bytes] = {}
    """Of files that were read and checked already; those are not read again."""
    config: dict[str, Any] = {}
    roles: Mapping[str, Preset] = {}
    role: str | None = None
    """Of calls that name none."""
    is_read_only: bool = False
    config_keys: str = "any"
    """`harmless`: what a call may set of Codex's config starts no program and widens no access."""
    native: dict[str, Any] = {}

    @property
    def is_narrow(self) -> bool:
        """Whether calls may set only harmless keys of Codex's config."""
        return self.is_read_only or self.config_keys == "harmless"


def spec_of(house: House, arguments: dict[str, Any]) -> ThreadSpec:
    """The thread that checked arguments ask for. Blocking where the settings name files."""
    role = role_of(house, arguments.get("role"))
    asked = merged(_further(arguments), arguments.get("config", {}))
    _check_config(house, asked)
    config = merged(house.config, asked)
    effort = role.reasoning_effort or house.reasoning_effort
    if effort is not None:
        config.setdefault("model_reasoning_effort", effort)
    return ThreadSpec(
        cwd=folder_of(house, arguments),
        model=arguments.get("model") or role.model or house.model or house.fast_model,
        sandbox=_sandbox(house, arguments.get("sandbox") or role.sandbox),
        approval_policy=arguments.get("approval-policy") or role.approval_policy or house.approval_policy,
        base_instructions=arguments.get("base-instructions") or _text_of(house, house.base_prompt_file),
        developer_instructions=_joined(
            arguments.get("developer-instructions"), _text_of(house, house.extra_instructions_file)
        ),
        config=config,
        native=house.native,
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


def changes_of(house: House, arguments: dict[str, Any]) -> dict[str, Any]:
    """What checked arguments ask to be different in a session that is had back. Blocking like `spec_of`."""
    spec = spec_of(house, arguments)
    asked = {_FIELDS[name] for name in arguments if name in _FIELDS}
    if "role" in asked:
        asked = (asked - {"role"}) | {"model", "sandbox", "approval_policy", "config"}
    return {field: getattr(spec, field) for field in asked if getattr(spec, field) is not None}


def folder_of(house: House, arguments: dict[str, Any]) -> Path:
    asked = arguments.get("cwd")
    return house.here / expanded(asked) if asked else house.cwd


def expanded(path: str) -> Path:
    """With a home in the place of `~`; where there is none, it is a name like any other."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def check_folder(folder: Path) -> None:
    """-32007 in words if a session cannot work there: Codex would start there all the same."""
    if not os.path.isdir(folder):
        raise proxy_error(INVALID_SESSION_PARAMS, f"There is no folder {_shown(folder)}: cwd must name one.")


def _shown(path: Path) -> str:
    return code_label(str(path), MAX_SHOWN_CHARS)


def role_of(house: House, asked: str | None) -> Preset:
    name = asked or house.role
    if name is None:
        return Preset()
    if name not in house.roles:
        known = ", ".join(sorted(house.roles)) or "none is configured"
        raise proxy_error(
            INVALID_SESSION_PARAMS, f"There is no role '{code_label(name)}' ({known}).", role=name
        )
    return house.roles[name]


def _check_config(house: House, asked: dict[str, Any]) -> None:
    """Refuse a call's config that names what this server does not let calls set."""
    found = forbidden_keys(house, asked)
    if not found:
        return
    key = spelled(found[0])
    if house.is_read_only:
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


def forbidden_keys(house: House, config: Mapping[str, Any]) -> list[KeyPath]:
    """What a session may not have in its config here; the flags of whoever started the server pass."""
    if not house.is_narrow:
        return []
    return config_keys.forbidden(config, house.config)


def left_out(house: House, config: Mapping[str, Any]) -> tuple[str, ...]:
    """What a session had in its config and does not have here, in a sentence; nothing if nothing is."""
    found = dict.fromkeys(spelled(path[:2]) for path in forbidden_keys(house, config))
    if not found:
        return ()
    why = "this server was started with --readonly" if house.is_read_only else "config_keys forbids it"
    more = len(found) - MAX_KEYS_NAMED
    names = ", ".join(list(found)[:MAX_KEYS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return (f"Left out of the session's config, because {why}: {names}",)


def narrowing(config: Mapping[str, Any], *, is_read_only: bool, keys: str, equip: Equip) -> Equip:
    """What every thread goes through as it is opened, by whatever way: new, resumed, woken by mail."""
    if is_read_only:
        return lambda agent_id, spec: equip(agent_id, config_keys.read_only(spec, config))
    if keys == "harmless":
        return lambda agent_id, spec: equip(agent_id, config_keys.harmless(spec, config))
    return equip


def _sandbox(house: House, wanted: str | None) -> str | None:
    if not house.is_read_only:
        return wanted or house.sandbox
    if wanted not in (None, "read-only"):
        raise proxy_error(
            INVALID_SESSION_PARAMS,
            f"This server was started with --readonly: a session with {wanted} access cannot be started.",
            sandbox=wanted,
        )
    return "read-only"


_CONFIG_KEYS = {
    "compact-prompt": "compact_prompt",
    "profile": "profile",
    "include-plan-tool": "tools.update_plan.enabled",
}
"""Parameters of the old tools that are plain config today."""


def _further(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: arguments[name] for name, key in _CONFIG_KEYS.items() if arguments.get(name) is not None}


def _joined(*texts: str | None) -> str | None:
    return "\n\n".join(text for text in texts if text) or None


def _text_of(house: House, path: Path | None) -> str | None:
    return None if path is None else read_text(path, "prompt file", house.contents.get(path))


def read_text(path: Path, what: str, content: bytes | None = None) -> str:
    """A file that somebody named; -32008 in words if it cannot be had. `content` is what it held.

    Blocking, for as long as the disk.
    """

    def refused(why: str) -> Exception:
        return proxy_error(AGENT_FILE_NOT_FOUND, f"The {what} {_shown(path)} {why}.", path=_shown(path))

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
