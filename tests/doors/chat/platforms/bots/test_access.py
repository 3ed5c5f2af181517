"""Who may speak to a bot."""

from __future__ import annotations

import pytest

from laneway.base.errors import UsageError
from laneway.doors.chat.platforms.bots.access import MAX_STRANGERS, STRANGER_S, Strangers, bot_access
from laneway.testing.clock import HandClock


def test_without_allowed_users_a_bot_does_not_start() -> None:
    with pytest.raises(UsageError, match="laneway setup telegram"):
        bot_access("telegram", [], [], ["-100"])


@pytest.mark.parametrize("user", ["@ana", "ana", "١٢", "", "--1", "1 2"])
def test_only_numeric_ids_are_taken(user: str) -> None:
    with pytest.raises(UsageError, match="numeric"):
        bot_access("telegram", [user], [], [])


def test_an_owner_must_be_allowed_to_speak() -> None:
    with pytest.raises(UsageError, match="owners must be allowed_users, too: 3"):
        bot_access("discord", ["1", "2"], ["3"], [])


def test_all_users_are_owners_unless_some_are_named() -> None:
    assert bot_access("telegram", ["1", "2"], [], []).owners == {"1", "2"}
    assert bot_access("telegram", ["1", "2"], ["2"], []).owners == {"2"}


def test_in_groups_the_user_and_the_group_must_be_allowed() -> None:
    access = bot_access("telegram", ["1"], [], ["-100"])
    assert access.may_speak("1", "1", is_private=True)
    assert access.may_speak("1", "-100", is_private=False)
    assert not access.may_speak("1", "-200", is_private=False)
    assert not access.may_speak("2", "-100", is_private=False)
    assert not access.may_speak("2", "2", is_private=True)


def test_owners_answer_everything_and_who_asked_what_is_not_for_owners() -> None:
    access = bot_access("telegram", ["1", "2", "3"], ["1"], [])
    assert access.may_answer("1", for_owners=True, asked_by="2")
    assert not access.may_answer("2", for_owners=True, asked_by="2")
    assert access.may_answer("2", for_owners=False, asked_by="2")
    assert not access.may_answer("3", for_owners=False, asked_by="2")
    assert not access.may_answer("", for_owners=False, asked_by="")


def test_a_stranger_is_named_once_an_hour() -> None:
    told: list[str] = []
    clock = HandClock()
    strangers = Strangers("telegram", clock, told.append)
    for _ in range(3):
        strangers.turned_away("9", "Eve\u202e\n", "9")
    assert len(told) == 1
    assert "user 9" in told[0]
    assert "\\u202e" in told[0]
    assert "\n" not in told[0]
    clock.advance(STRANGER_S)
    strangers.turned_away("9", "Eve", "9")
    strangers.turned_away("9", "Eve", "9")
    assert len(told) == 2


def test_strangers_that_are_remembered_are_bounded() -> None:
    told: list[str] = []
    strangers = Strangers("telegram", HandClock(), told.append)
    for number in range(MAX_STRANGERS + 1):
        strangers.turned_away(str(number), "", "1")
    strangers.turned_away("0", "", "1")
    assert len(told) == MAX_STRANGERS + 2
