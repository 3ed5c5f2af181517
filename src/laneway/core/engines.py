"""The engines of one process by their keys: the default, and others, made when first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from laneway.base.engines import BACKENDS
from laneway.base.errors import EngineClosed, UsageError
from laneway.core.ports import Engine

MakeEngine: TypeAlias = Callable[[], Engine]
"""Makes an engine without starting it; raises a `BinaryError` where its program is missing."""

NO_OTHERS: Mapping[str, MakeEngine] = MappingProxyType({})


class Engines:
    """Gives the engine for a key, and closes all of them."""

    def __init__(self, default: Engine, others: Mapping[str, MakeEngine] = NO_OTHERS) -> None:
        self.default = default
        self._others = others
        self._made = {default.backend: default}
        self._is_closed = False

    @property
    def backends(self) -> tuple[str, ...]:
        """The keys, the default first."""
        return tuple(dict.fromkeys((self.default.backend, *self._others)))

    @property
    def in_use(self) -> tuple[Engine, ...]:
        """Those that were asked for so far, the default first."""
        return tuple(self._made.values())

    def get(self, backend: str | None) -> Engine:
        """The engine with this key; none is the default."""
        engine = self.default if backend is None else self._made.get(backend)
        if engine is not None:
            return engine
        make = self._others.get(str(backend))
        if make is None:
            name = BACKENDS.get(str(backend), str(backend))
            raise UsageError(f"There is no engine {name} here: take one of {', '.join(self.backends)}.")
        if self._is_closed:
            raise EngineClosed
        self._made[str(backend)] = made = make()
        return made

    async def aclose(self) -> None:
        self._is_closed = True
        await asyncio.gather(*(engine.aclose() for engine in self.in_use))
