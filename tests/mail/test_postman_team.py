"""Sessions as members of a team: they join it, follow it where it goes, and leave it."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from laneway.core.ports import ThreadSpec
from laneway.mail.draft import draft
from laneway.mail.locks import Patience
from laneway.mail.membership import Membership
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.postman import Orders, Postman
from laneway.mail.roster import Roster
from laneway.mail.teams import TeamChoice
from tests.core.named import support as named_support
from tests.core.named.support import ME
from tests.core.support import until
from tests.mail.box import found
from tests.mail.postman_support import TEAM, PostmanStage, postman_stage

CLAUDE, OTHER = "session-1c29d454", "session-77777777"


def remove(places: Places, team: str) -> None:
    """As Claude Code removes a team at its end."""
    away = places.team(team).with_name(f"{team}.deleted-1")
    places.team(team).rename(away)
    shutil.rmtree(away)


def register(places: Places, name: str) -> None:
    """Another program adds a member of its own beside ours."""
    config = places.config(TEAM)
    team = json.loads(config.read_text())
    team["members"].append({"agentId": f"{name}@{TEAM}", "name": name})
    config.write_text(json.dumps(team))


# ── joining and leaving ────────────────────────────────────────────────────


@pytest.mark.covers("FR-7.3")
async def test_a_session_is_a_member_from_its_opening_to_its_end(tmp_path: Path) -> None:
    """With what the other programs want to know of a member."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open("reviewer", model="gpt-5")
        member = Roster(here.places, TEAM).read().member("reviewer")
        assert member is not None
        assert (member.is_ours, member.model, member.cwd) == (True, "gpt-5", str(here.stage.root))
        await here.stage.sessions.close(ME, agent_id=codex.agent_id)
        await until(lambda: here.members() == ["team-lead"])


async def test_at_the_end_of_the_postman_all_members_leave_at_once(tmp_path: Path) -> None:
    """FR-7.3: while their sessions are still there to be closed in order."""
    async with postman_stage(tmp_path) as here:
        await here.open()
        await here.open("reviewer")
        assert here.members() == ["team-lead", "codex", "reviewer"]
    assert here.members() == ["team-lead"]


async def test_at_the_end_of_all_sessions_all_members_leave(tmp_path: Path) -> None:
    """The other order: the door closes the sessions, then everything else ends."""
    async with postman_stage(tmp_path) as here:
        await here.open()
        await here.stage.sessions.shutdown()
    assert here.members() == ["team-lead"]


async def test_a_roster_that_somebody_holds_keeps_nobody_from_ending(tmp_path: Path) -> None:
    """The record stays, with our process in it: the next Laneway knows that it is dead."""
    patience = Patience(budget_s=0.05)
    async with postman_stage(tmp_path, patience=patience) as here:
        await here.open()
        await here.quiet()
        here.places.config(TEAM).with_name("config.json.lock").mkdir()
    assert here.members() == ["team-lead", "codex"]


async def test_sessions_that_were_there_before_the_postman_join_too(tmp_path: Path) -> None:
    """Whoever begins first, both meet."""
    places = found(tmp_path, team=TEAM)
    async with named_support.stage(tmp_path / "state") as stage:
        codex = await stage.open()
        membership = Membership(places, TeamChoice(TEAM, "said"))
        async with Postman(stage.sessions, stage.clock, membership, Post(places)) as postman:
            here = PostmanStage(stage, places, postman, Post(places))
            here.write("hello")
            assert await here.turn(codex) == ["hello"]


async def test_a_session_that_is_resumed_is_a_member_again(tmp_path: Path) -> None:
    """The same session, closed and back before its leaving is done: it stays in."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        await here.stage.sessions.close(ME, agent_id=codex.agent_id)
        again = await here.stage.sessions.resume(ME, agent_id=codex.agent_id)
        await here.quiet()
        assert here.members() == ["team-lead", "codex"]
        here.write("welcome back")
        assert await here.turn(again) == ["welcome back"]


async def test_a_name_that_somebody_else_has_in_the_team_gets_no_mail_and_says_so(tmp_path: Path) -> None:
    """It would be the other's mail. When the other has left, it joins."""
    async with postman_stage(tmp_path, is_there=False) as here:
        found(tmp_path, "codex", team=TEAM)
        here.write("for the other one")
        codex = await here.stage.open("codex")
        await until(lambda: here.notices)
        await here.poll()
        assert [notice.kind for notice in here.notices] == ["join"]
        assert "gets no mail" in here.notices[0].text
        assert here.turns(codex) == []
        assert here.unread() == ["for the other one"]
        Roster(here.places, TEAM)._remove(lambda member: member.name == "codex")
        await here.poll()
        assert here.members() == ["team-lead"]  # asked again only after a while
        await here.later(60)
        await until(lambda: here.members() == ["team-lead", "codex"])


@pytest.mark.parametrize("name", ["codex", "Codex"])
async def test_a_name_that_somebody_else_registers_while_we_have_it_is_theirs_at_once(
    tmp_path: Path, name: str
) -> None:
    """Nothing is looked at between two rounds either; we leave, say so once, and come back behind them."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        register(here.places, name)
        here.write("for the other one")
        await until(lambda: here.notices)
        for _ in range(3):
            await here.poll()
        assert [notice.kind for notice in here.notices] == ["join"]
        assert here.members() == ["team-lead", name]
        assert (here.turns(codex), here.unread(), here.postman.pending()) == ([], ["for the other one"], 0)
        Roster(here.places, TEAM)._remove(lambda member: member.name == name)
        await here.later(60)
        assert await here.turn(codex) == ["for the other one"]


async def test_mail_that_codex_has_is_not_marked_in_an_inbox_that_is_somebody_elses_by_now(
    tmp_path: Path,
) -> None:
    """It was ours to read and is not ours to write."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        here.stage.thread(codex).records = False
        here.write("hello")
        assert await here.turn(codex) == ["hello"]
        register(here.places, "codex")
        here.accept(codex)
        await here.end(codex)
        await until(lambda: here.notices)
        assert here.unread() == ["hello"]


async def test_in_a_team_whose_roster_cannot_be_read_nothing_is_read_or_marked(tmp_path: Path) -> None:
    """Nobody can say whose the name is. It is said once, and goes on when the roster is back."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        await here.quiet()
        config = here.places.config(TEAM)
        good = config.read_bytes()
        config.write_text('{"members": [')
        here.write("hello")
        await until(lambda: here.notices)
        await here.poll()
        assert [notice.kind for notice in here.notices] == ["inbox"]
        assert (here.turns(codex), here.unread()) == ([], ["hello"])
        config.write_bytes(good)
        await here.poll()
        assert await here.turn(codex) == ["hello"]


async def test_a_member_that_was_dropped_from_the_roster_joins_again(tmp_path: Path) -> None:
    """Somebody wrote the roster from memory: the next round puts it right, and what waits is known."""
    async with postman_stage(tmp_path, orders=Orders(auto=False)) as here:
        await here.open()
        here.write("hello")
        await until(lambda: here.postman.pending() == 1)
        config = here.places.config(TEAM)
        team = json.loads(config.read_text())
        config.write_text(json.dumps({**team, "members": team["members"][:1]}))
        await here.poll()
        await until(lambda: "codex" in here.members())
        await until(lambda: here.postman.pending() == 1)


async def test_what_a_killed_laneway_left_in_the_roster_is_removed(tmp_path: Path) -> None:
    """Mail to the dead would wait for ever."""
    async with postman_stage(tmp_path, is_there=False) as here:
        dead = {"pid": 1, "procStart": "0", "pidSpace": ""}
        found(tmp_path, team=TEAM)
        Roster(here.places, TEAM).register("ghost")
        config = here.places.config(TEAM)
        team = json.loads(config.read_text())
        for member in team["members"][1:]:
            member["laneway"] = {**member["laneway"], **{k: v for k, v in dead.items() if v}}
        config.write_text(json.dumps(team))
        assert here.members() == ["team-lead", "ghost"]
        await here.poll()
        assert here.members() == ["team-lead"]


# ── a team that comes and goes ─────────────────────────────────────────────


async def test_a_team_that_nobody_has_made_is_made_if_we_may(tmp_path: Path) -> None:
    """For sessions that only want to write to each other."""
    async with postman_stage(tmp_path, is_there=False, founds=True) as here:
        codex = await here.open()
        here.write("hello")
        assert await here.turn(codex) == ["hello"]


async def test_the_watch_hears_of_mail_in_a_team_that_we_made(tmp_path: Path) -> None:
    """There was no folder that it could have watched: neither the team's nor the one of all teams."""
    async with postman_stage(tmp_path, is_there=False, founds=True) as here:
        codex = await here.open()
        await here.quiet()
        here.write("hello")
        assert await here.turn(codex) == ["hello"]


async def test_a_team_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """Quietly: no folder is made and nothing is said; when it comes, the session joins."""
    async with postman_stage(tmp_path, is_there=False) as here:
        codex = await here.stage.open("codex")
        for _ in range(3):
            await here.poll()
        assert not here.places.team(TEAM).exists()
        found(tmp_path, team=TEAM)
        await here.poll()
        await until(lambda: "codex" in here.members())
        here.write("hello")
        assert await here.turn(codex) == ["hello"]
        assert here.notices == []


async def test_a_removed_team_is_left_and_not_made_anew(tmp_path: Path) -> None:
    """Though we might have made it at first. The session goes on; if the team is back, so are we."""
    async with postman_stage(tmp_path, founds=True, is_there=False) as here:
        codex = await here.open()
        remove(here.places, TEAM)
        for _ in range(3):
            await here.poll()
        assert not here.places.team(TEAM).exists()
        turn = await here.stage.busy(codex)
        await here.end(codex)
        assert (await turn.result()).text == "done"
        found(tmp_path, team=TEAM)
        await here.poll()
        await until(lambda: "codex" in here.members())
        here.write("hello again")
        assert await here.turn(codex) == ["hello again"]


async def test_a_team_that_is_removed_and_made_anew_is_joined_without_a_poll(tmp_path: Path) -> None:
    """The watch hears both."""
    async with postman_stage(tmp_path) as here:
        codex = await here.open()
        await here.quiet()
        remove(here.places, TEAM)
        found(tmp_path, team=TEAM)
        await until(lambda: "codex" in here.members())
        here.write("hello")
        assert await here.turn(codex) == ["hello"]


async def test_a_session_of_claude_code_that_goes_on_under_another_name_is_followed(tmp_path: Path) -> None:
    """Members, inbox and watch move along; what we left behind is clean."""
    now_at = [TeamChoice(CLAUDE, "claude")]
    async with postman_stage(tmp_path, team=CLAUDE, choice=now_at[0], find=lambda: now_at[-1]) as here:
        codex = await here.open()
        found(tmp_path, team=OTHER)
        now_at.append(TeamChoice(OTHER, "claude"))
        await here.poll()
        await until(lambda: "codex" in here.members(OTHER))
        assert here.postman.team == OTHER
        assert here.members(CLAUDE) == ["team-lead"]
        here.write("found you", team=OTHER)
        assert await here.turn(codex) == ["found you"]
        await until(lambda: not here.unread(team=OTHER))


async def test_a_session_of_claude_code_that_begins_later_is_joined(tmp_path: Path) -> None:
    """We may be started before its team is there: then `default` was only for the time being."""
    now_at = [TeamChoice(TEAM, "default")]
    async with postman_stage(tmp_path, choice=now_at[0], find=lambda: now_at[-1]) as here:
        await here.open()
        found(tmp_path, team=CLAUDE)
        now_at.append(TeamChoice(CLAUDE, "claude"))
        await here.poll()
        await until(lambda: "codex" in here.members(CLAUDE))
        assert here.members() == ["team-lead"]


async def test_at_the_end_of_claude_code_nobody_moves_to_the_default_team(tmp_path: Path) -> None:
    """Its team is gone, and we are about to be: no other team is troubled with us."""
    now_at = [TeamChoice(CLAUDE, "claude")]
    async with postman_stage(
        tmp_path, team=CLAUDE, choice=now_at[0], find=lambda: now_at[-1], founds=True
    ) as here:
        await here.open()
        remove(here.places, CLAUDE)
        now_at.append(TeamChoice("default", "default"))
        await here.poll()
        assert here.postman.team == CLAUDE
        assert here.places.teams() == ()


async def test_a_team_that_was_asked_for_is_never_left_for_another(tmp_path: Path) -> None:
    """Not even for the session that started us."""
    async with postman_stage(tmp_path, find=lambda: TeamChoice(CLAUDE, "claude")) as here:
        await here.poll()
        assert here.postman.team == TEAM


# ── two of us ──────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-20.2")
async def test_two_postmen_share_a_team_and_bring_only_their_own_mail(tmp_path: Path) -> None:
    """FR-20.2 and FR-20.3: the same inboxes, other identities."""
    places = found(tmp_path, team=TEAM)
    async with (
        named_support.stage(tmp_path / "a") as one,
        named_support.stage(tmp_path / "b") as two,
    ):
        memberships = [Membership(places, TeamChoice(TEAM, "said")) for _ in range(2)]
        post = Post(places)
        async with (
            Postman(one.sessions, one.clock, memberships[0], post) as first,
            Postman(two.sessions, two.clock, memberships[1], post) as second,
        ):
            here, there = PostmanStage(one, places, first, post), PostmanStage(two, places, second, post)
            ann, bob = await here.open("ann"), await there.open("bob")
            here.write("for bob", to="bob")
            here.write("for ann", to="ann")
            assert await here.turn(ann) == ["for ann"]
            assert await there.turn(bob) == ["for bob"]
            await here.marked("ann")
            await here.marked("bob")
        assert here.members() == ["team-lead"]


@pytest.mark.covers("FR-20.4")
async def test_subagents_are_not_members(tmp_path: Path) -> None:
    """FR-20.4: a thread that our thread started has no identity, and so no membership."""
    async with postman_stage(tmp_path) as here:
        await here.stage.sessions.hub.start(ME, ThreadSpec(cwd=tmp_path))
        await here.open()
        assert here.members() == ["team-lead", "codex"]


async def test_mail_sent_to_all_reaches_each_session_once(tmp_path: Path) -> None:
    """It is one message with one id; what one has had, the other has not."""
    async with postman_stage(tmp_path) as here:
        ann, bob = await here.open("ann"), await here.open("bob")
        await asyncio.to_thread(here.post.broadcast, "zoe", "hello all", team=TEAM)
        assert [await here.turn(each) for each in (ann, bob)] == [["hello all"], ["hello all"]]


async def test_what_waits_in_the_spool_is_delivered_at_the_start_and_by_the_poll(tmp_path: Path) -> None:
    """Somebody held the inbox when it was sent; it is counted, and arrives."""
    places = found(tmp_path, "bob", team=TEAM)

    def spool(post: Post, text: str) -> str:
        lock = places.inbox(TEAM, "bob").with_name("bob.json.lock")
        lock.parent.mkdir(exist_ok=True)
        lock.mkdir()
        try:
            return post.send(draft("codex", text, team=TEAM), Address("bob", TEAM)).outcome
        finally:
            lock.rmdir()

    hasty = Post(places, patience=Patience(budget_s=0.05))
    assert spool(hasty, "before") == "spooled"
    async with named_support.stage(tmp_path / "state") as stage:
        membership = Membership(places, TeamChoice(TEAM, "said"))
        async with Postman(stage.sessions, stage.clock, membership, hasty) as postman:
            here = PostmanStage(stage, places, postman, hasty)
            await until(lambda: here.unread("bob") == ["before"])
            await here.quiet()
            assert await asyncio.to_thread(spool, hasty, "later") == "spooled"
            await here.poll()
            await until(lambda: here.unread("bob") == ["before", "later"])
            await here.quiet()
            assert (postman.metrics.unspooled, postman.metrics.spooled) == (2, 0)
