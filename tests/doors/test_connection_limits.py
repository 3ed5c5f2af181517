"""Room for those who have proved themselves, whatever the others do."""

from __future__ import annotations

import logging

import pytest

from laneway.doors.connection_limits import Arrival, ConnectionLimits
from laneway.testing.clock import HandClock


class Lobby:
    """Limits of three and two, and who was dropped, by number."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.limits = ConnectionLimits(
            self.clock, server="the server", max_unproven=3, max_proven=2, unproven_s=10
        )
        self.dropped: list[int] = []

    def arrive(self, number: int) -> Arrival:
        return self.limits.arrive(lambda: self.dropped.append(number))


def test_of_too_many_that_proved_nothing_the_oldest_makes_room() -> None:
    """However many come; each is dropped once."""
    lobby = Lobby()
    for number in range(6):
        lobby.arrive(number)
    assert lobby.dropped == [0, 1, 2]
    lobby.clock.advance(11)
    assert lobby.dropped == [0, 1, 2, 3, 4, 5]


def test_who_proves_itself_in_time_stays() -> None:
    """No time and no crowd moves it any more."""
    lobby = Lobby()
    known = lobby.arrive(0)
    assert known.prove()
    assert known.prove()
    for number in range(1, 5):
        lobby.arrive(number)
    lobby.clock.advance(100)
    assert 0 not in lobby.dropped


def test_there_is_no_proof_after_the_deadline() -> None:
    """The connection is broken off; what was still on its way from it counts for nothing."""
    lobby = Lobby()
    late = lobby.arrive(0)
    lobby.clock.advance(10)
    assert lobby.dropped == [0]
    assert not late.prove()
    late.rest()
    lobby.clock.advance(100)
    assert lobby.dropped == [0]


def test_those_who_proved_themselves_are_bounded_too_and_refused_not_dropped() -> None:
    """One more gets in when one of them leaves."""
    lobby = Lobby()
    first, second, third = (lobby.arrive(number) for number in range(3))
    assert [first.prove(), second.prove(), third.prove()] == [True, True, False]
    first.leave()
    assert third.prove()
    assert lobby.dropped == []


def test_who_rests_has_its_deadline_from_then_on_and_is_the_youngest() -> None:
    """As somebody who has just come."""
    lobby = Lobby()
    rests = lobby.arrive(0)
    for number in (1, 2):
        lobby.arrive(number)
    assert rests.prove()
    lobby.clock.advance(5)
    rests.rest()
    lobby.arrive(3)
    assert lobby.dropped == [1]
    lobby.clock.advance(5)
    assert lobby.dropped == [1, 2]
    lobby.clock.advance(5)
    assert lobby.dropped == [1, 2, 0, 3]


def test_who_left_is_not_dropped() -> None:
    """Neither by time nor by others who come."""
    lobby = Lobby()
    lobby.arrive(0).leave()
    for number in range(1, 4):
        lobby.arrive(number)
    lobby.clock.advance(100)
    assert lobby.dropped == [1, 2, 3]


def test_when_the_server_ends_nobody_without_a_proof_is_waited_for() -> None:
    """Nor those who come while it ends. The others are not this limit's to end."""
    lobby = Lobby()
    lobby.arrive(0)
    known = lobby.arrive(1)
    known.prove()
    lobby.limits.refuse_unproven()
    lobby.arrive(2)
    assert lobby.dropped == [0, 2]


def test_a_flood_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """And again when there was quiet in between."""
    lobby = Lobby()
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "laneway"):
            for number in range(50):
                lobby.arrive(number)
        lobby.clock.advance(100)
    assert len(caplog.records) == 2
    assert "the server has 3 connections" in caplog.records[0].getMessage()
