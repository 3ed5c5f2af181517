"""Texts with which control commands are answered: help, status, the lanes, usage. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from laneway.base.plain import label, quoted
from laneway.doors.chat.conversation_letters import TellPlace
from laneway.doors.chat.conversation_state import ConversationData
from laneway.doors.chat.routing import CONTROLS
from laneway.lanes.contract import Lane

LaneOf = Callable[[str], Lane]


def text_for(effect: TellPlace, state: ConversationData, lane_of: LaneOf, problems: Sequence[str]) -> str:
    """`lane_of` gives each lane, open or not."""
    match effect.what:
        case "help":
            return help_text(state, lane_of)
        case "unknown":
            return f"There is no command {quoted('/' + effect.subject)}.\n\n{help_text(state, lane_of)}"
        case "status":
            return status_text(state)
        case "lanes":
            return lanes_text(state, lane_of, problems)
        case "lane":
            named = f"There is no lane {quoted(effect.subject)}. " if effect.subject else ""
            lanes = ", ".join(state.lanes)
            return f"{named}Plain words go to {state.default_lane}. `/lane NAME` changes that: {lanes}."
        case "usage":
            return label(lane_of(effect.subject).usage)
        case _:
            assert_never(effect.what)


def help_text(state: ConversationData, lane_of: LaneOf) -> str:
    lines = ["Lanes:"]
    lines += [f"- {quoted(f'/{name} …')}: {_about(lane_of(name))}" for name in state.lanes]
    lines += ["", "Commands:"]
    lines += [f"- `/{name}`: {about}" for name, about in CONTROLS.items()]
    return "\n".join(
        [
            *lines,
            "",
            f"Other messages go to {state.default_lane}; a reply goes to its lane. `//x` sends `/x`.",
        ]
    )


def lanes_text(state: ConversationData, lane_of: LaneOf, problems: Sequence[str]) -> str:
    lines = []
    for name in state.lanes:
        mark = " (plain words go there)" if name == state.default_lane else ""
        lines.append(f"- **{name}**{mark}: {_about(lane_of(name))}")
    return "\n".join([*lines, *(f"- {label(problem, 400)}" for problem in problems)])


def status_text(state: ConversationData) -> str:
    lines = []
    for turn in state.turns:
        doing = "is being stopped" if turn.stopped_by else "works"
        lines.append(f"- {turn.lane} {doing}: {quoted(label(turn.task, 100)) if turn.task else 'by itself'}")
    lines += [f"- {each.lane} asks (#{each.number})" for each in state.open_questions]
    lines += [
        f"- waits ({position}, for {plan.lane}): {quoted(label(plan.taken.text, 100))}"
        for position, plan in enumerate(state.queue, 1)
    ]
    lines = [*lines, ""] if lines else ["Nothing runs and nothing waits."]
    return "\n".join([*lines, f"Plain words go to {state.default_lane}."])


def _about(lane: Lane) -> str:
    return label(lane.description, 100)
