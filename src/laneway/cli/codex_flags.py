"""Flags of `codex` itself, for commands that stand in for it: what they mean for a thread."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TypeAlias

from laneway.base.errors import UsageError
from laneway.base.schema import APPROVALS, SANDBOXES
from laneway.codex.overrides import merged

Flags: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"

ONCE = {"on-failure": "on-request"}
"""Codex dropped this approval policy; `on-request` is what became of it."""


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
        type=lambda word: ONCE.get(word, word),
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


def override(pair: str) -> tuple[str, Any]:
    """`key=value` as Codex reads it: the value is TOML, or else a plain string."""
    import tomllib

    key, mark, value = pair.partition("=")
    if not mark or not key.strip():
        raise UsageError(f"-c takes KEY=VALUE, not {pair!r}.")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def overrides(pairs: list[str]) -> dict[str, Any]:
    """All of them as one nested table; the last of a key wins, as with Codex itself."""
    return merged(*({key: value} for key, value in map(override, pairs)))


def folder(path: Path) -> Path:
    """A folder that is there; else a sentence."""
    found = path.expanduser().resolve()
    if not found.is_dir():
        raise UsageError(f"There is no folder {path}.")
    return found
