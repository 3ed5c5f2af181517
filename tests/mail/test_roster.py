"""A team's members: ours come and go, everybody else's stay as they are."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import BadName, FileDamaged, MailBusy, MemberForeign, TeamGone
from laneway.mail.places import Places
from laneway.mail.roster import Roster, check_may_act_as
from laneway.testing.mail_rules import config_faults
from tests.mail.box import AT_ONCE, TEAM, found

OTHER = """
import sys
from pathlib import Path
from laneway.mail.places import Places
from laneway.mail.roster import Roster
roster = Roster(Places.of({}, Path(sys.argv[1])), sys.argv[2])
print(roster.register("codex", cwd="/w"), flush=True)
sys.stdin.read()
"""
CLAUDE = """
import sys
from pathlib import Path
from laneway.testing.mail_claude import Claude
from laneway.testing.mail_program import Failed
config, claude = Path(sys.argv[1]), Claude()
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    news = {"turn": number, "ballast": "x" * (number * 997 % 20_000)}
    while True:
        try:
            claude.update_roster(config, lambda roster: roster.update(news))
            break
        except Failed:
            pass
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return found(tmp_path, "worker", leadProcess={"pid": 1, "pidSpace": "x", "claimedAt": 5})


def roster(places: Places, team: str = TEAM, **options: Any) -> Roster:
    return Roster(places, team, **options)


def names(places: Places) -> list[str]:
    return [member.name for member in roster(places).read().members]


def config(places: Places) -> Any:
    return json.loads(places.config(TEAM).read_bytes())


class Process:
    """Another Python, that ends with its block."""

    def __init__(self, program: str, *arguments: object) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def has_spoken(self) -> bool:
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_team_is_read_as_claude_code_writes_it(places: Places) -> None:
    """A lead without a model, a process that leads; what is no member is passed over."""
    team = roster(places).read()
    assert (team.name, [member.name for member in team.members]) == (TEAM, ["team-lead", "worker"])
    lead = team.members[0]
    assert (lead.is_lead, lead.model, lead.owner, lead.agent_type) == (True, "", None, "team-lead")
    assert team.lead is not None
    assert (team.lead.pid, team.lead.space) == (1, "x")
    assert team.member("worker") == team.members[1]
    assert team.member("nobody") is None


@pytest.mark.parametrize(
    "members", [None, [5, {}, {"name": "x"}, {"agentId": "y"}, {"name": 1, "agentId": "z"}], "gone"]
)
def test_a_roster_with_odd_members_is_read_all_the_same(places: Places, members: object) -> None:
    """Claude Code passes over them, too; ours goes behind them, and they stay."""
    odd = {"name": TEAM, "members": members} if members != "gone" else {}
    places.config(TEAM).write_text(json.dumps(odd))
    assert roster(places).read().members == ()
    assert roster(places).register("codex", cwd="/w") == "added"
    assert config(places)["members"][:-1] == (members if isinstance(members, list) else [])
    assert names(places) == ["codex"]


def test_a_member_of_ours_can_be_read_by_all_three(places: Places) -> None:
    """With everything that ATM 0.46 needs and nothing that Claude Code calls a forgery."""
    before = places.config(TEAM).read_bytes()
    assert roster(places).register("codex-1", model="gpt-5", cwd="/w") == "added"
    assert config_faults(places.config(TEAM).read_bytes(), {"codex-1"}) == []
    member = config(places)["members"][-1]
    assert {name: member[name] for name in ("agentId", "model", "cwd", "tmuxPaneId", "isActive")} == {
        "agentId": f"codex-1@{TEAM}",
        "model": "gpt-5",
        "cwd": "/w",
        "tmuxPaneId": "",
        "isActive": False,
    }
    assert places.config(TEAM).read_bytes().startswith(before.removesuffix(b"\n  ]\n}")), (
        "theirs keep their bytes"
    )
    assert roster(places).deregister("codex-1")
    assert places.config(TEAM).read_bytes() == before


def test_registering_again_renews_and_keeps_what_others_added(places: Places) -> None:
    """Claude Code gives colours and modes."""
    roster(places).register("codex", model="old", cwd="/w")
    changed = config(places)
    changed["members"][-1]["color"] = "blue"
    places.config(TEAM).write_text(json.dumps(changed))
    assert roster(places).register("codex", model="new", cwd="/w") == "renewed"
    member = roster(places).read().member("codex")
    assert member is not None
    assert (member.model, member.color, member.is_ours) == ("new", "blue", True)
    assert names(places).count("codex") == 1


def test_a_member_that_somebody_else_registered_is_theirs(places: Places) -> None:
    """Not overwritten, not removed, not acted for; nor one whose inbox would be the same."""
    before = places.config(TEAM).read_bytes()
    with pytest.raises(MemberForeign, match="Somebody else registered worker"):
        roster(places).register("worker")
    assert not roster(places).deregister("worker")
    assert not roster(places).deregister("team-lead")
    with pytest.raises(MemberForeign):
        check_may_act_as(places, TEAM, "worker")
    assert places.config(TEAM).read_bytes() == before
    twin = config(places)
    twin["members"].append({"agentId": "a.b@x", "name": "a.b"})
    places.config(TEAM).write_text(json.dumps(twin))
    with pytest.raises(MemberForeign, match=r"registered a\.b .* a-b could be mistaken for it"):
        roster(places).register("a-b")
    for name in ("Worker", "WORKER", "A-b"):
        with pytest.raises(MemberForeign):
            roster(places).register(name)
        with pytest.raises(MemberForeign):
            check_may_act_as(places, TEAM, name)


def test_a_name_of_ours_in_other_letters_is_another_name_and_is_refused(places: Places) -> None:
    """On some disks both would have one inbox; the record of ours stays as it is."""
    roster(places).register("codex", cwd="/w")
    before = places.config(TEAM).read_bytes()
    with pytest.raises(MemberForeign, match=r"codex .* Codex could be mistaken for it"):
        roster(places).register("Codex", cwd="/w")
    with pytest.raises(MemberForeign):
        check_may_act_as(places, TEAM, "CODEX")
    assert places.config(TEAM).read_bytes() == before
    check_may_act_as(places, TEAM, "codex")


def test_a_record_of_ours_is_no_right_beside_somebody_elses_of_the_same_name(places: Places) -> None:
    """Wherever theirs stands."""
    roster(places).register("codex", cwd="/w")
    team = config(places)
    theirs = {"agentId": "codex@x", "name": "codex"}
    for members in ([*team["members"], theirs], [theirs, *team["members"]]):
        places.config(TEAM).write_text(json.dumps({**team, "members": members}))
        with pytest.raises(MemberForeign):
            roster(places).register("codex", cwd="/w")
        with pytest.raises(MemberForeign):
            check_may_act_as(places, TEAM, "codex")


def test_what_a_dead_laneway_left_in_other_letters_is_taken_over(places: Places, tmp_path: Path) -> None:
    """One record then, under the name of whoever lives."""
    with Process(OTHER, tmp_path, TEAM) as other:
        assert other.hear() == "added"
    assert roster(places).register("CODEX", cwd="/w") == "renewed"
    assert names(places) == ["team-lead", "worker", "CODEX"]


def test_a_living_laneways_member_is_its_own_and_a_dead_ones_is_free(places: Places, tmp_path: Path) -> None:
    """The record says which process made it, so that a number that is used again is nobody."""
    with Process(OTHER, tmp_path, TEAM) as other:
        assert other.hear() == "added"
        with pytest.raises(MemberForeign, match=f"Process {other.process.pid} registered codex"):
            roster(places).register("codex")
        with pytest.raises(MemberForeign):
            check_may_act_as(places, TEAM, "codex")
        assert not roster(places).deregister("codex")
        assert not roster(places).clear_dead()
    check_may_act_as(places, TEAM, "codex")
    assert roster(places).register("codex", cwd="/w") == "renewed"
    check_may_act_as(places, TEAM, "codex")
    assert not roster(places).clear_dead()


def test_what_a_dead_laneway_left_can_be_cleared_away(places: Places, tmp_path: Path) -> None:
    """Nobody answers there any more."""
    roster(places).register("here", cwd="/w")
    with Process(OTHER, tmp_path, TEAM) as other:
        assert other.hear() == "added"
    assert roster(places).clear_dead()
    assert names(places) == ["team-lead", "worker", "here"]


def test_reserved_names_and_paths_are_not_registered(places: Places) -> None:
    """By the one check of names."""
    for name in ("team-lead", "user", "a/b", "", "a@b"):
        with pytest.raises(BadName):
            roster(places).register(name)


def test_a_team_that_is_gone_is_told_once_and_left_quietly(places: Places) -> None:
    """And never made anew, not even if making one was allowed: it is Claude Code's."""
    shutil.rmtree(places.team(TEAM))
    with pytest.raises(TeamGone):
        roster(places).read()
    with pytest.raises(TeamGone):
        roster(places).register("codex", create=True)
    assert not roster(places).deregister("codex")
    assert not roster(places).clear_dead()
    check_may_act_as(places, TEAM, "codex")
    assert list(places.teams_root.iterdir()) == []


def test_a_team_of_our_own_can_be_founded(tmp_path: Path) -> None:
    """Whole from its first instant, and by whoever is first; not where something else lies."""
    places = Places.of({}, tmp_path)
    with pytest.raises(TeamGone):
        roster(places, "crew").register("codex")
    assert roster(places, "crew").register("codex", cwd="/w", create=True) == "added"
    assert roster(places, "crew").register("other", cwd="/w", create=True) == "added"
    assert [member.name for member in roster(places, "crew").read().members] == ["codex", "other"]
    assert config_faults(places.config("crew").read_bytes(), {"codex", "other"}) == []
    assert places.config("crew").stat().st_mode & 0o777 == 0o600
    places.team("bare").mkdir()
    with pytest.raises(TeamGone):
        roster(places, "bare").register("codex", create=True)
    assert sorted(path.name for path in places.teams_root.iterdir()) == ["bare", "crew"]


def test_a_damaged_roster_is_left_as_it_is(places: Places) -> None:
    """It is not ours to begin anew."""
    places.config(TEAM).write_text('{"members": [')
    with pytest.raises(FileDamaged, match="cannot be read"):
        roster(places).read()
    with pytest.raises(FileDamaged, match="left as it is"):
        roster(places).register("codex")
    assert places.config(TEAM).read_text() == '{"members": ['


def test_a_roster_that_is_locked_is_left_alone(places: Places) -> None:
    """Until the time is up."""
    before = places.config(TEAM).read_bytes()
    (places.team(TEAM) / "config.json.lock").mkdir()
    with pytest.raises(MailBusy):
        roster(places, patience=AT_ONCE).register("codex")
    assert places.config(TEAM).read_bytes() == before


def test_claude_code_writing_in_place_and_we_lose_nothing_of_each_other(places: Places) -> None:
    """A real second process, which tears the file at every write; we read, join and leave meanwhile."""
    rounds = 150
    with Process(CLAUDE, places.config(TEAM), rounds) as claude:
        assert claude.hear() == "ready"
        mine, rounds_of_ours = roster(places), 0
        while not claude.has_spoken() or not rounds_of_ours:
            mine.register("codex", cwd="/w")
            assert [member.name for member in mine.read().members] == ["team-lead", "worker", "codex"]
            assert mine.deregister("codex")
            rounds_of_ours += 1
        assert claude.hear() == "done"
    assert names(places) == ["team-lead", "worker"]
    assert config(places)["turn"] == rounds - 1
    assert config_faults(places.config(TEAM).read_bytes(), set()) == []
