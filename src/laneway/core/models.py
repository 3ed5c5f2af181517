"""The models that an engine offers, as far as a session's settings need to know them. Values.

An engine may accept models that its list does not have (other providers), so a name is all that is
known of some.
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
    """What is known of a model, which may be its name only."""
    return next((each for each in listed if each.model == model), Model(model, model))
