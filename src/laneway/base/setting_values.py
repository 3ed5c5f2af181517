"""A setting's value with its source, and the spelling of keys and values for people."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.kinds import to_text
from laneway.base.plain import plain_code

Keys: TypeAlias = tuple[str, ...]
"""`("model",)`, or inside a table `("roles", "reviewer", "model")`."""

SECRET_ENDS = ("token", "secret", "key")
SourceKind: TypeAlias = Literal["flag", "environment", "named", "repo", "global", "default"]


class Source(msgspec.Struct, frozen=True):
    """Where a setting's value comes from."""

    kind: SourceKind
    name: str = ""
    """The flag, the variable or the file."""
    line: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{to_text(self.name)}, line {self.line}"
        return to_text(self.name) if self.name else self.kind


class SettingValue(msgspec.Struct, frozen=True):
    value: Any
    source: Source


class Ignored(msgspec.Struct, frozen=True):
    """A setting that is not used, and why."""

    keys: Keys
    value: Any
    source: Source
    why: str

    def __str__(self) -> str:
        return f"{self.source}: {spell(self.keys)} = {display(self.keys, self.value)} is ignored: {self.why}."


def spell(keys: Keys) -> str:
    """`roles.reviewer.model`, with quotes where TOML wants them."""
    return ".".join(
        part
        if part.isascii() and part.replace("-", "").replace("_", "").isalnum()
        else repr(plain_code(part))
        for part in keys
    )


def display(keys: Keys, value: object) -> str:
    """A value for people, with secrets hidden."""
    from laneway.base.redact import HIDDEN, redact  # loaded late: only when a value is displayed

    return HIDDEN if is_secret(keys) and value is not None else redact(to_text(value))


def is_secret(keys: Keys) -> bool:
    return keys[-1].endswith(SECRET_ENDS)
