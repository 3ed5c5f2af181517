"""Where mail lies: roots by environment, and which team is ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import BadName
from laneway.mail.ancestry import AncestorProcess, Ancestry, fate, lineage, ourselves, pid_space
from laneway.mail.places import Places
from laneway.mail.teams import Here, Moved, TeamChoice, TeamRemoved, mail_team, session_team, whereabouts
from tests.mail.box import TEAM, found

US = Ancestry((AncestorProcess(40, "400"), AncestorProcess(30, "300"), AncestorProcess(20, "200")), "here#1")


def leads(pid: int, start: str = "", space: str = "here#1", at: int = 1) -> dict[str, Any]:
    process: dict[str, Any] = {"pid": pid, "pidSpace": space, "claimedAt": at}
    return {"leadProcess": {**process, "procStart": start} if start else process}


@pytest.mark.parametrize(
    ("environment", "teams", "spool"),
    [
        ({}, "/home/me/.claude/teams", "/home/me/.config/atm/laneway-spool"),
        ({"ATM_HOME": " "}, "/home/me/.claude/teams", "/home/me/.config/atm/laneway-spool"),
        ({"ATM_HOME": "/atm"}, "/atm/.claude/teams", "/atm/.config/atm/laneway-spool"),
        ({"CLAUDE_CONFIG_DIR": "/cc"}, "/cc/teams", "/home/me/.config/atm/laneway-spool"),
        ({"CLAUDE_CONFIG_DIR": "/cc", "ATM_HOME": "/atm"}, "/cc/teams", "/atm/.config/atm/laneway-spool"),
    ],
)
def test_the_roots_follow_the_environment(environment: dict[str, str], teams: str, spool: str) -> None:
    """CLAUDE_CONFIG_DIR stands for ~/.claude, ATM_HOME for the home folder; blanks are nothing."""
    places = Places.of(environment, Path("/home/me"))
    assert (places.teams_root, places.spool_root) == (Path(teams), Path(spool))


def test_two_roots_do_not_share_a_spool() -> None:
    """Their teams may have the same names."""
    one = Places.of({"CLAUDE_CONFIG_DIR": "/one"}, Path("/home/me"))
    other = Places.of({"CLAUDE_CONFIG_DIR": "/other"}, Path("/home/me"))
    assert one.spooled("t", "a") != other.spooled("t", "a")


def test_teams_are_folders_with_a_roster(tmp_path: Path) -> None:
    """Not those that are being removed, not ATM's backups, not files."""
    places = found(tmp_path)
    found(tmp_path, team="crew")
    for name in (".backups", "empty", "x.deleted-0cfd852e-1286-4b04-8538-8f475d9fb593"):
        (places.teams_root / name).mkdir()
    (places.teams_root / "x.deleted-0cfd852e-1286-4b04-8538-8f475d9fb593" / "config.json").write_text("{}")
    (places.teams_root / "note.txt").write_text("")
    assert places.teams() == ("crew", TEAM)
    assert Places.of({}, tmp_path / "nowhere").teams() == ()


def test_what_was_said_is_the_team(tmp_path: Path) -> None:
    """Before the session that started us; and it is checked."""
    places = found(tmp_path, **leads(20, "200"))
    assert mail_team(places, "crew", US) == TeamChoice("crew", "said")
    with pytest.raises(BadName):
        mail_team(places, "../crew", US)


def test_the_claude_session_above_us_is_the_team(tmp_path: Path) -> None:
    """By its process, wherever it stands above us."""
    places = found(tmp_path, **leads(20, "200"))
    assert mail_team(places, None, US) == TeamChoice(TEAM, "claude")


@pytest.mark.parametrize(
    "process",
    [
        leads(99),
        leads(20, "999"),
        leads(20, "200", "elsewhere#1"),
        {},
        {"leadProcess": 5},
        {"leadProcess": {"pid": "20"}},
    ],
)
def test_a_session_of_somebody_else_is_not_ours(tmp_path: Path, process: dict[str, Any]) -> None:
    """Another process, another that got its number, another machine, nobody, nonsense."""
    assert mail_team(found(tmp_path, **process), None, US) == TeamChoice("default", "default")


def test_the_nearest_session_counts_and_of_one_process_the_latest(tmp_path: Path) -> None:
    """A Claude Code inside a Claude Code; and one that began a new session."""
    places = found(tmp_path, team="session-outer", **leads(20, "200", at=9))
    found(tmp_path, team="session-old", **leads(30, "300", at=1))
    found(tmp_path, team="session-new", **leads(30, "300", at=2))
    assert session_team(places, US) == "session-new"


def test_a_roster_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """It is somebody else's trouble."""
    places = found(tmp_path, **leads(20, "200"))
    (places.teams_root / "session-0").mkdir()
    (places.teams_root / "session-0" / "config.json").write_text('{"leadProcess')
    assert session_team(places, US) == TEAM


def test_our_own_line_is_told_as_claude_code_tells_it() -> None:
    """So a leadProcess that is really above us is found: here our parent, as /proc shows it."""
    family = lineage()
    assert family.members[0] == ourselves()
    assert [member.pid for member in family.members[:2]] == [os.getpid(), os.getppid()]
    parent = family.members[1]
    assert family.has(parent.pid, parent.start, pid_space())
    assert not family.has(parent.pid, "1", pid_space())


def test_a_process_is_alive_gone_or_not_ours_to_judge() -> None:
    """A number that another process has now is gone; one of another machine is unknown."""
    us = ourselves()
    assert fate(us.pid, us.start, pid_space()) == "alive"
    assert fate(us.pid, "1", pid_space()) == "gone"
    assert fate(2**22 + 1, "", pid_space()) == "gone"
    assert [fate(pid, "", pid_space()) for pid in (0, -1, 2**80)] == ["gone"] * 3
    assert fate(us.pid, us.start, "elsewhere") == "unknown"


def test_a_team_is_here_moved_or_gone(tmp_path: Path) -> None:
    """A new session of the same process takes over; without one the team is gone."""
    places = found(tmp_path, **leads(20, "200"))
    assert whereabouts(places, TEAM, US) == Here()
    places.team(TEAM).rename(places.teams_root / f"{TEAM}.deleted-0cfd852e-1286-4b04-8538-8f475d9fb593")
    assert whereabouts(places, TEAM, US) == TeamRemoved()
    found(tmp_path, team="session-next", **leads(20, "200"))
    assert whereabouts(places, TEAM, US) == Moved("session-next")
    assert whereabouts(places, "crew", US) == TeamRemoved()
    assert json.loads(places.config("session-next").read_text())["name"] == "session-next"
