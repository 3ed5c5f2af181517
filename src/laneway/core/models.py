"""Models that an engine offers, with the facts that a session's settings need. Values.

An engine may accept models that are not in its list (other providers); of these only the name is known.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Effort(msgspec.Struct, frozen=True):
    effort: str
    description: str = ""


class Model(msgspec.Struct, frozen=True):
    model: str
    name: str = ""
    description: str = ""
    is_hidden: bool = False
    efforts: tuple[Effort, ...] = ()
    default_effort: str | None = None
    takes_images: bool = True
    takes_personality: bool = False

    def supports(self, effort: str) -> bool:
        return any(effort == known.effort for known in self.efforts)


def known(listed: Iterable[Model], model: str) -> Model:
    """The facts about a model; of one that is not listed, its name only."""
    return next((each for each in listed if each.model == model), Model(model, model))
