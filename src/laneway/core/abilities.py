"""Refuses what an engine declares not to have (`Offers`), in one sentence with its name. Pure.

For engines, which call it before they begin; front ends ask `Offers` themselves where they show something.
"""

from __future__ import annotations

from laneway.base.errors import EngineCannot
from laneway.core.offers import Compaction, Offers
from laneway.core.ports import ImagePart, TurnSpec


def check_turn(engine: str, offers: Offers, spec: TurnSpec) -> None:
    """Raise `EngineCannot` for a turn that needs what the engine of this name lacks."""
    if not offers.images and any(isinstance(part, ImagePart) for part in spec.parts):
        raise EngineCannot(engine, "take images", "Describe the image instead.")
    if not offers.schemas and spec.output_schema is not None:
        raise EngineCannot(engine, "hold its answer to a schema", "Ask for the form in the prompt instead.")
    if isinstance(spec.special_turn, Compaction):
        if not offers.compaction:
            raise EngineCannot(engine, "compact a conversation")
    elif spec.special_turn is not None and not offers.reviews:
        raise EngineCannot(engine, "run a review of its own", "Ask for one in a prompt instead.")


def check_steer(engine: str, offers: Offers) -> None:
    if not offers.steering:
        raise EngineCannot(engine, "take anything into a running turn")


def check_fork(engine: str, offers: Offers) -> None:
    if not offers.forks:
        raise EngineCannot(engine, "copy a conversation")
