"""Names are names: what may be one, and what a mail address is."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadName
from laneway.base.kinds import IDENTITY
from laneway.mail.names import (
    Address,
    HeldBy,
    Registered,
    address,
    check_recipient,
    check_sender,
    check_team,
    in_the_way,
    inbox_name,
    is_taken_for,
)
from laneway.mail.places import Places

PATHS = ("..", ".", "../x", "a/b", "a\\b", "/etc/passwd", "a\0b", "", " ", "a\n", "~", "x/../y", ".hidden")


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_nobodys_name(name: str) -> None:
    """Neither a team's nor a sender's nor a recipient's; each is told in a sentence."""
    for check in (check_team, check_sender, check_recipient):
        if name == "~" and check is check_recipient:
            continue  # no path for us, who expand nothing
        with pytest.raises(BadName, match=r"cannot be the name of .*\.$"):
            check(name)


@pytest.mark.parametrize("name", ["team-lead", "main", "user", "system", "Team-Lead"])
def test_reserved_names_send_nothing(name: str) -> None:
    """Claude Code would call their mail forged. They can be written to."""
    with pytest.raises(BadName, match="reserved"):
        check_sender(name)
    assert check_recipient(name) == name


@pytest.mark.parametrize("name", ["codex", "codex-2", "A_b", "0", "x" * 64])
def test_plain_names_are_for_everyone(name: str) -> None:
    """The letters that all three programs leave as they are."""
    assert check_sender(name) == check_recipient(name) == check_team(name) == inbox_name(name) == name


def test_a_name_that_is_too_long_is_refused() -> None:
    """And shown cut."""
    for check in (check_team, check_sender, check_recipient):
        with pytest.raises(BadName) as caught:
            check("x" * 1000)
        assert len(str(caught.value)) < 400


def test_a_team_that_is_being_removed_is_no_team() -> None:
    """Claude Code renames a folder so before it removes it."""
    with pytest.raises(BadName):
        check_team("session-1c29d454.deleted-0cfd852e-1286-4b04-8538-8f475d9fb593")


@pytest.mark.covers("FR-4.2")
def test_an_address_is_an_agent_or_an_agent_at_a_team() -> None:
    """Without a team it is the sender's own."""
    assert address("bob", "home") == Address("bob", "home")
    assert address("bob@away", "home") == Address("bob", "away")
    assert str(address("team-lead@away", "home")) == "team-lead@away"


@pytest.mark.parametrize(
    "said", ["", "@", "bob@", "@team", "a@b@c", "a@@b", "../../x@..", "bob@../..", "a b/c@t"]
)
def test_what_is_no_address_is_told_in_a_sentence(said: str) -> None:
    """Empty parts, a second @, paths."""
    with pytest.raises(BadName, match=r"\.$"):
        address(said, "home")


def test_a_teammate_of_claude_code_may_have_dots_and_spaces_in_its_name() -> None:
    """Its inbox is where Claude Code puts it."""
    assert address("code reviewer.v2", "home").agent == "code reviewer.v2"
    assert inbox_name("code reviewer.v2") == "code-reviewer-v2"


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_name_leads_out_of_its_folder(team: str, agent: str) -> None:
    """Whatever somebody calls a team or an agent: refused, or a file directly inside."""
    places = Places.of({}, Path("/home/me"))
    try:
        path = places.inbox(team, agent)
        spooled = places.spooled(team, agent)
    except BadName:
        return
    assert path.parent == Path("/home/me/.claude/teams") / team / "inboxes"
    assert spooled.parent.parent == places.spool
    assert path.name.removesuffix(".json").replace("-", "").replace("_", "").isalnum() or set(path.stem) <= {
        "-",
        "_",
    }
    assert path.resolve() == path


# ── whose a name is ────────────────────────────────────────────────────────

OURS = st.from_regex(IDENTITY, fullmatch=True)
HOLDERS = st.sampled_from(get_args(HeldBy))
GROW = st.sampled_from("\N{LATIN SMALL LIGATURE FI}\N{HORIZONTAL ELLIPSIS}\N{TRADE MARK SIGN}\N{KELVIN SIGN}")
"""One character each, and so one dash in a file name; spelt plainly they are letters, or several dots."""
NO_FILE = st.characters(codec="utf-8").filter(lambda each: inbox_name(each) == "-") | GROW
ANY_NAME = st.text(min_size=1, max_size=70) | OURS


def wide(name: str) -> str:
    """The same letters as East Asian typography has them."""
    return "".join(chr(ord(each) + 0xFEE0) if each.isalnum() else each for each in name)


@st.composite
def same_to_a_reader(draw: st.DrawFn) -> tuple[str, str]:
    """A name of ours, and the same in other case or in compatible letters."""
    name = draw(OURS)
    return name, "".join(draw(st.sampled_from((each, each.swapcase(), wide(each)))) for each in name)


@st.composite
def same_to_a_disk(draw: st.DrawFn) -> tuple[str, str]:
    """A name of ours, and one with the same inbox: what no file name has is a dash there."""
    name = draw(st.text("aZ0-", min_size=1, max_size=8).map(lambda rest: "a" + rest))
    return name, "".join(draw(NO_FILE) if each == "-" else each.swapcase() for each in name)


@given(OURS, st.lists(st.builds(Registered, ANY_NAME, HOLDERS), max_size=5))
def test_a_name_is_taken_only_if_no_member_that_lives_could_be_meant_by_it(
    name: str, members: list[Registered]
) -> None:
    """Whatever others are called: no inbox of theirs is ours, on any disk, and no reader confuses us."""
    if in_the_way(name, members) is not None:
        return
    for member in members:
        if member.held_by == "gone" or (member.held_by != "others" and member.name == name):
            continue
        assert inbox_name(member.name).lower() != inbox_name(name).lower()
        assert unicodedata.normalize("NFKC", member.name).casefold() != name.casefold()


@given(
    same_to_a_reader() | same_to_a_disk(),
    HOLDERS,
    st.lists(st.builds(Registered, ANY_NAME, st.just("gone")), max_size=3),
)
def test_every_spelling_of_a_name_is_that_name(
    pair: tuple[str, str], held_by: HeldBy, dead: list[Registered]
) -> None:
    """Only what a dead Laneway left is free, and our own record under the very name."""
    name, other = pair
    found = in_the_way(name, [*dead, Registered(other, held_by), *dead])
    is_free = held_by == "gone" or (held_by != "others" and other == name)
    assert (found is None) == is_free
    assert is_taken_for(name, other)
    assert is_taken_for(other, name)


@given(OURS, OURS, HOLDERS)
def test_names_of_ours_are_kept_apart_by_letters_alone(one: str, other: str, held_by: HeldBy) -> None:
    """Nobody is refused for being called nearly the same."""
    assert is_taken_for(one, other) == (one.lower() == other.lower())
    if one.lower() != other.lower():
        assert in_the_way(one, [Registered(other, held_by)]) is None


@given(OURS, st.lists(st.builds(Registered, ANY_NAME, HOLDERS), max_size=4), st.randoms())
def test_the_order_of_a_roster_decides_nothing(name: str, members: list[Registered], chance: Any) -> None:
    """One member in the way is enough, wherever it stands, also beside a record of our own."""
    shuffled = list(members)
    chance.shuffle(shuffled)
    is_refused = in_the_way(name, members) is not None
    assert (in_the_way(name, shuffled) is not None) == is_refused
    assert is_refused == any(in_the_way(name, [member]) for member in members)


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("bob", "Bob"),
        ("c-x", "c.x"),
        ("c-x", "c\nx"),
        ("kim", "\N{KELVIN SIGN}im"),
        ("strasse", "stra\N{LATIN SMALL LETTER SHARP S}e"),
        ("fin", "\N{LATIN SMALL LIGATURE FI}n"),
        ("b-b", "bo\N{COMBINING DIAERESIS}b"),
    ],
)
def test_names_that_are_taken_for_each_other(name: str, member: str) -> None:
    """A file name, a disk or a reader cannot tell them apart."""
    assert in_the_way(name, [Registered(member, "others")]) == Registered(member, "others")
