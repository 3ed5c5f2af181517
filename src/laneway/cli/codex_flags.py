"""Flags of `codex` itself (`-m`, `-s`, `-a`, `-c`, `-C`), for our commands that accept the same ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TypeAlias

from laneway.base.errors import UsageError
from laneway.base.schema import APPROVALS, SANDBOXES
from laneway.core.overrides import merged

Flags: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"

REPLACED_POLICIES = {"on-failure": "on-request"}
"""Approval policies that Codex removed, and what replaced them."""


def add_model(parser: Flags) -> None:
    parser.add_argument(
        "-m", "--model", metavar="NAME", help="the model; like -s, -a and -c, overrides your config.toml"
    )


def add_sandbox(parser: Flags) -> None:
    parser.add_argument("-s", "--sandbox", choices=SANDBOXES, metavar="MODE", help=", ".join(SANDBOXES))


def add_approval(parser: Flags) -> None:
    parser.add_argument(
        "-a",
        "--ask-for-approval",
        dest="approval",
        type=lambda word: REPLACED_POLICIES.get(word, word),
        choices=APPROVALS,
        metavar="WHEN",
        help=", ".join(APPROVALS),
    )


def add_config(parser: Flags) -> None:
    parser.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set any value of Codex's config",
    )


def add_folder(parser: Flags, what: str, default: Path | None = None) -> None:
    """`-C`, as Codex spells it and as we do."""
    parser.add_argument(
        "-C", "--cwd", "--cd", dest="cwd", type=Path, default=default, metavar="DIR", help=what
    )


def override(pair: str) -> tuple[str, Any]:
    """Parse `key=value` as Codex does: the value is TOML, or else a plain string."""
    import tomllib

    key, mark, value = pair.partition("=")
    if not mark or not key.strip():
        raise UsageError(f"-c takes KEY=VALUE, not {pair!r}.")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def overrides(pairs: list[str]) -> dict[str, Any]:
    """All pairs as one nested table; the last one of a key wins, as with Codex itself."""
    return merged(*({key: value} for key, value in map(override, pairs)))


def folder(path: Path) -> Path:
    """The resolved path of an existing folder; else a `UsageError`."""
    resolved = path.expanduser().resolve()
    if not resolved.is_dir():
        raise UsageError(f"There is no folder {path}.")
    return resolved
