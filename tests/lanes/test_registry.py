"""The registry of lanes: names, collisions, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.lanes import get_all_lanes, get_lane_class, register_full_lane, register_lane
from laneway.lanes.names import CONTROL_COMMANDS, ENGINE_LANES
from laneway.lanes.protocol import LanePlugin
from tests.lanes.samples import AIDER, IMPORT_LINE, Painter, registered

pytestmark = pytest.mark.usefixtures("fresh_registry")


def aider() -> Any:
    names: dict[str, Any] = {}
    exec(IMPORT_LINE + AIDER, names)
    return names["AiderLane"]


@pytest.mark.covers("003-lane.1")
def test_the_documents_sample_is_a_lane_with_one_import_line() -> None:
    """It lacks three members of the protocol; the defaults make it whole."""
    cls = aider()
    registered_class: Any = get_lane_class("aider")
    assert registered_class is cls
    lane = cls()
    assert isinstance(lane, LanePlugin)
    assert lane.wants_user_input is False
    assert cls.usage == "Usage: /aider <task>"


@pytest.mark.covers("003-lane.8")
def test_a_lane_is_found_in_any_case_and_listed_once() -> None:
    """As the document normalises it."""
    cls = registered(Painter, command="PAINT")
    assert get_lane_class("Paint") is cls
    assert get_all_lanes() == {"paint": cls}
    assert get_lane_class("nobody") is None


def test_what_is_listed_is_a_copy() -> None:
    """Nobody registers by changing it."""
    registered(Painter)
    get_all_lanes().clear()
    assert list(get_all_lanes()) == ["paint"]


@pytest.mark.covers("003-lane.8")
def test_a_second_lane_of_a_command_is_refused_by_the_name_of_the_first() -> None:
    """In any case of letters; the first one stays."""
    first = registered(Painter)
    with pytest.raises(ValueError, match=r"^Lane command 'paint' already registered by Painter$"):
        registered(Painter, command="Paint")
    assert get_lane_class("paint") is first


@pytest.mark.covers("003-lane.8")
@pytest.mark.parametrize("command", sorted(CONTROL_COMMANDS | ENGINE_LANES))
def test_a_command_of_our_own_is_refused(command: str) -> None:
    """Control commands come before lanes, so such a lane could never be reached."""
    with pytest.raises(ValueError, match=f"Lane command '{command}'"):
        registered(Painter, command=command.upper())
    assert get_all_lanes() == {}


@pytest.mark.parametrize("command", ["", "/paint", "paint it", "pa/int", "paint@bot", "p" * 33, "ä", None, 7])
def test_a_malformed_command_is_refused(command: object) -> None:
    """It could not be typed."""
    with pytest.raises(ValueError, match="command"):
        registered(Painter, command=command)


def test_a_class_without_run_turn_is_refused() -> None:
    """Also one that only inherits the protocol's own."""

    class Nothing:
        command = "nothing"

    class Inherits(LanePlugin):
        command = "inherits"

    for cls in (Nothing, Inherits):
        with pytest.raises(ValueError, match="has no method run_turn"):
            register_lane(cls)


def test_a_flag_that_is_a_method_is_refused() -> None:
    """It would always be true."""

    def wants_user_input(self: object) -> bool:
        return False

    with pytest.raises(ValueError, match="wants_user_input must be a property"):
        registered(Painter, wants_user_input=wants_user_input)


def test_usage_and_description_have_defaults() -> None:
    """Made of the command and the docstring."""

    @register_lane
    class Small:
        """Says little.

        At length.
        """

        command = "small"

        async def run_turn(self, words: object) -> None: ...

    cls: Any = Small
    assert (cls.usage, cls.description) == ("Usage: /small <task>", "Says little.")


@pytest.mark.parametrize("name", ["usage", "description"])
def test_a_usage_that_only_an_instance_has_is_refused(name: str) -> None:
    """Lists of lanes are made of classes; there it would be no text, and break whoever reads it."""
    with pytest.raises(ValueError, match=f"{name} must be a text of the class"):
        registered(Painter, **{name: property(lambda self: "Paint")})
    assert get_all_lanes() == {}


@pytest.mark.covers("003-lane.1")
def test_what_a_class_inherits_from_the_protocol_is_replaced_by_defaults() -> None:
    """The protocol's members have no bodies."""

    @register_lane
    class Inherits(LanePlugin):
        command = "inherits"

        async def run_turn(self, input: object) -> str | None:  # noqa: A002
            return None

    lane: Any = Inherits()  # type: ignore[abstract]
    assert (lane.is_busy, lane.wants_user_input) == (False, False)


def test_a_lane_of_the_richer_contract_must_be_whole_and_shares_the_names() -> None:
    """What it lacks is said by name."""
    registered(Painter)

    class Half:
        name = "half"
        usage = "Usage: /half <task>"
        description = "Half a lane"

    with pytest.raises(ValueError, match=r"Lane 'half' \(Half\) has no probe, open"):
        register_full_lane(Half)
    Half.name = "paint"
    with pytest.raises(ValueError, match="already registered by Painter"):
        register_full_lane(Half)
