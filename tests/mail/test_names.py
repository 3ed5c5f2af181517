"""Names are names: what may be one, and what a mail address is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadName
from laneway.mail.names import Address, address, check_recipient, check_sender, check_team, inbox_name
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
