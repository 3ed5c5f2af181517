"""Which lane leads a new conversation: the chosen one, or else the first other one that can be used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from laneway.base.errors import LanewayError
from laneway.base.plain import label
from laneway.doors.chat.engine_words import sentence
from laneway.lanes.contract import Lane

MAX_ABOUT_CHARS = 100
"""Of a lane's description, in the notice: nobody must take a scripted answer for a real one."""
PROBE_S = 20.0
"""For a lane to say whether it can be used: it may start its program for that."""


async def choose_lead(wanted: str, names: Sequence[str], lane_of: Callable[[str], Lane]) -> tuple[str, str]:
    """The lane, and what people are told if it is not the wanted one. With none that works: the wanted."""
    first_problem = ""
    for name in (wanted, *(name for name in names if name != wanted)):
        problem = await _problem(name, lane_of)
        if problem is None:
            if not first_problem:
                return name, ""
            about = label(lane_of(name).description, MAX_ABOUT_CHARS)
            return name, f"{first_problem} Until then, {name} leads this conversation ({about})."
        first_problem = first_problem or problem
    return wanted, ""


async def _problem(name: str, lane_of: Callable[[str], Lane]) -> str | None:
    try:
        async with asyncio.timeout(PROBE_S):
            return await lane_of(name).probe()
    except KeyError:
        return f"There is no lane {name}: choose another as chat.default_lane."
    except TimeoutError:
        return f"{name} does not answer."
    except LanewayError as problem:
        return sentence(str(problem))
