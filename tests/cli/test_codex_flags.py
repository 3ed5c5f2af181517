"""`-c KEY=VALUE` as Codex takes it, made one table of."""

from __future__ import annotations

import pytest

from laneway.base.errors import ConfigRefused, UsageError
from laneway.cli.codex_flags import overrides


def test_flags_become_one_nested_table_and_the_last_wins() -> None:
    """Names with dots by quotes, which Codex's own flags cannot have, or inside of a value."""
    assert overrides(
        [
            "model=gpt-5.5",
            "features.a=true",
            "features = { b = 1 }",
            'mcp_servers."my.server".args=["-x", "y=z"]',
            'projects={"/path/x.y"={trust_level="untrusted"}}',
            "model = 'm2'",
            "word= not toml",
        ]
    ) == {
        "model": "m2",
        "features": {"a": True, "b": 1},
        "mcp_servers": {"my.server": {"args": ["-x", "y=z"]}},
        "projects": {"/path/x.y": {"trust_level": "untrusted"}},
        "word": "not toml",
    }


@pytest.mark.parametrize("pairs", [["features=1", "features.a=1"], ["a..b=1"], ['a."b=1']])
def test_flags_that_contradict_each_other_are_refused(pairs: list[str]) -> None:
    """At start-up, in a sentence."""
    with pytest.raises(ConfigRefused):
        overrides(pairs)
    with pytest.raises(UsageError, match="KEY=VALUE"):
        overrides(["=1"])
