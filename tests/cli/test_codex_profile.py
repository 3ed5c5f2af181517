"""Codex's profiles, read for a Codex that does not read them itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import UsageError
from laneway.cli.codex_profile import flat, profile
from laneway.cli.main import build_parser
from laneway.cli.mcp_server import config_of


def test_a_profile_is_a_file_of_its_own(tmp_path: Path) -> None:
    """Each value can be overridden by itself."""
    (tmp_path / "fast.config.toml").write_text('model = "m"\n[tools.update_plan]\nenabled = true\n')
    assert profile("fast", tmp_path) == {"model": "m", "tools.update_plan.enabled": True}


def test_an_older_profile_is_a_table_of_the_config(tmp_path: Path) -> None:
    """The file goes first where there are both."""
    (tmp_path / "config.toml").write_text('[profiles.fast]\nmodel = "old"\n[profiles.slow]\nmodel = "s"\n')
    (tmp_path / "fast.config.toml").write_text('model = "new"\n')
    assert (profile("fast", tmp_path), profile("slow", tmp_path)) == ({"model": "new"}, {"model": "s"})


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("none", "", "There is no profile none"),
        ("../etc", "", "A profile name consists of letters"),
        ("bad", "model = ", "is not valid TOML"),
    ],
)
def test_a_profile_that_cannot_be_read_is_a_sentence(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    """Codex would go on without it."""
    (tmp_path / "bad.config.toml").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        profile(name, tmp_path)


def test_a_table_with_a_dot_in_a_key_goes_along_whole() -> None:
    """Its parts could not be named."""
    table: dict[str, Any] = {"projects": {"/a.b": {"trust_level": "trusted"}}, "x": {"y": {"z": 1}}, "e": {}}
    assert flat(table) == {"projects": table["projects"], "x.y.z": 1, "e": {}}


def test_the_replacement_of_the_old_server_reads_profiles_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex itself refuses them in a thread's config, since 0.163 at the latest."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "fast.config.toml").write_text('model_reasoning_effort = "low"\nmodel = "m"\n')
    words = ["mcp-server", "-p", "fast", "-c", "model=n"]
    config = config_of(build_parser(words).parse_args(words))
    assert config == {"model_reasoning_effort": "low", "model": "n"}
