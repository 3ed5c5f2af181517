"""`docs/mcp.md` lists the same harmless config keys as the code."""

from __future__ import annotations

import re
from pathlib import Path

from laneway.codex.config_keys import HARMLESS, forbidden

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mcp.md"


def test_the_page_names_every_harmless_key_and_no_other() -> None:
    """Between the words that begin the list and those that end it."""
    (listed,) = re.findall(r"new keys every week:(.*?)Every other key", PAGE.read_text(), re.DOTALL)
    assert {tuple(key.split(".")) for key in re.findall(r"`([\w.]+)`", listed)} == HARMLESS


def test_no_key_of_the_table_of_those_that_do_more_is_harmless() -> None:
    """Each row names some."""
    (table,) = re.findall(r"\| keys \| what they do \|\n\|---\|---\|\n(.*?)\n\n", PAGE.read_text(), re.DOTALL)
    keys = [key for row in table.splitlines() for key in re.findall(r"`([\w.*]+)`", row.split("|")[1])]
    assert len(keys) > 20
    for key in keys:
        assert forbidden({key.replace("*", "any"): "x"}), key
