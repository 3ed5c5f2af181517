"""The tour must do what it says; it is the first thing that people run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laneway.cli.tour import STOPS
from laneway.cli.tour_jobs import BEFORE, BOTH, FIRST_ONLY
from tests.cli.support import laneway, misbehaving_codex


@pytest.mark.covers("J-boss.4")
async def test_a_person_sees_each_stop_and_its_outcome_even_with_a_home_in_the_temp_folder(
    tmp_path: Path,
) -> None:
    """As containers often have it: Codex lets every sandbox write there, unless it is told otherwise.

    Plain text, where there is no terminal.
    """
    ran = await laneway("tour", env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path.parent)})
    assert ran.code == 0, ran.out
    assert ran.out.count("✔") == len(STOPS)
    for number, (title, _) in enumerate(STOPS, 1):
        assert f"{number}  {title}" in ran.out
    assert '+print("hello, colleague")' in ran.out
    assert "\x1b[" not in ran.out
    shown = ran.out[ran.out.index("Codex over ACP") :]
    for line in (
        "  mode config · model ",
        "\n  hello from the sandbox\n",
        "  [x] Allow once\n",
        "\nsession/cancel\n",
    ):
        assert line in shown
    assert "\n▸ codex::Bash(seq 3 | wc -l)\n  │ 3\n" in shown
    assert "question 1: answered by you: blue\n" in shown
    assert "✔ claude leads; Codex was given two tasks" in shown
    menu = [line.split("  ")[-1] for line in shown.splitlines() if line.startswith("  menu.txt ")]
    assert menu == [" · ".join(each) for each in (BEFORE, BOTH, FIRST_ONLY, BOTH, BOTH)]
    resolved = [line.split()[1] for line in shown.splitlines() if line.startswith("codex_resolve ")]
    assert resolved == ["show", "accept", "rollback", "undo", "rerun", "accept"]


async def test_a_stop_that_does_not_do_what_it_says_fails_the_tour(tmp_path: Path) -> None:
    """Exit 0 only if each step did what it says: here Codex answers, but does nothing."""
    ran = await laneway("tour", "--rehearse", "--json", "--codex-bin", misbehaving_codex(tmp_path))
    told = json.loads(ran.out)
    assert ran.code == 1
    assert not told["ok"]
    found = {stop["stop"]: stop["ok"] for stop in told["stops"]}
    assert list(found) == [stop.__name__ for _, stop in STOPS]
    assert not any(found[name] for name in ("stream", "command", "edit", "approval", "acp", "chat", "jobs"))
