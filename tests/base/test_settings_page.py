"""`docs/settings.md` and the schema say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.base.kinds import to_text
from laneway.base.named_tables import TABLE_KEYS
from laneway.base.repo_rules import RULES
from laneway.base.schema import KEY_AT, KEYS, Key

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
HEAD = "| key | what it is | kind | default | variables |\n|---|---|---|---|---|\n"
RULES_HEAD = "| key | in a repository | risk |\n|---|---|---|\n"


def row(key: Key[Any]) -> str:
    default = "" if key.default is None else f"`{to_text(key.default)}`" if key.default != () else "none"
    variables = ", ".join(f"`{name}`" for name in key.variables)
    return f"| `{key.name}` | {key.summary} | {key.kind.label} | {default} | {variables} |\n"


def test_the_page_has_a_row_for_every_key_and_no_other() -> None:
    """Kind, default and variables."""
    assert HEAD + "".join(row(key) for key in KEYS.values()) + "\n" in PAGE.read_text()


def test_the_page_tells_for_every_key_what_a_repository_may_say_and_why() -> None:
    """Those that are free in a sentence of their own."""
    guarded = {name: rule for name, rule in RULES.items() if not rule.is_free}
    rows = "".join(f"| `{name}` | {rule.label} | {rule.reason} |\n" for name, rule in guarded.items())
    text = PAGE.read_text()
    assert RULES_HEAD + rows + "\n" in text
    for name, rule in RULES.items():
        assert not rule.is_free or f"| `{name}` | {rule.reason} |\n" in text


def test_the_page_names_the_tables_and_the_other_names() -> None:
    """Word for word."""
    text = PAGE.read_text()
    for name, table in TABLE_KEYS.items():
        assert f"| `{name}` | {table.summary} |" in text
    for place in KEY_AT:
        assert f"`{'.'.join(place)}`" in text
