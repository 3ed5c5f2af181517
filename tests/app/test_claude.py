"""The Claude engine of a command: what the settings make of it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from laneway.app.claude import make_claude
from laneway.claude.awake import IDLE_S, MAX_AWAKE, AwakeThreads
from laneway.cli.command_settings import claude_choice, settings_in

OPTIONS = Namespace(claude_bin=None, rehearse=True)


def awake_of(folder: Path) -> AwakeThreads:
    return make_claude(claude_choice(OPTIONS, settings_in({}, folder)))._setup.awake


def test_the_settings_say_when_a_session_sleeps_and_how_many_stay_awake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes and eight sessions where they say nothing."""
    usual = awake_of(tmp_path)
    assert (usual._idle_s, usual._max_awake) == (IDLE_S, MAX_AWAKE) == (600.0, 8)
    monkeypatch.setenv("LANEWAY_CLAUDE_IDLE_MINUTES", "3")
    monkeypatch.setenv("LANEWAY_CLAUDE_AWAKE", "2")
    changed = awake_of(tmp_path)
    assert (changed._idle_s, changed._max_awake) == (180.0, 2)
