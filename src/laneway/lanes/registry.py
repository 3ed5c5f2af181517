"""The lanes that were registered in this process, by command; and the defaults for what a plugin leaves out.

A module of a plugin registers its classes as it is imported, and nothing else ever does: there is no
scanning. `laneway.lanes.loading` imports the modules that the user's settings name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from laneway.lanes.contract import Lane
from laneway.lanes.names import normal
from laneway.lanes.protocol import LanePlugin

C = TypeVar("C", bound=type)

_plugins: dict[str, type[LanePlugin]] = {}
_full: dict[str, Callable[[], Lane]] = {}


def register_lane(cls: C) -> C:
    """Class decorator: make it a lane (`LanePlugin`). `ValueError` if its command is taken.

    Members that it lacks are added to it: no `interrupt` (its turn is cancelled at once), no questions.
    """
    command = _free(getattr(cls, "command", None))
    if _lacks(cls, "run_turn"):
        raise ValueError(f"Lane '{command}' ({cls.__name__}) has no method run_turn.")
    for name in ("is_busy", "wants_user_input"):
        if callable(getattr(cls, name, None)):
            raise ValueError(f"Lane '{command}' ({cls.__name__}): {name} must be a property, not a method.")
    for name, default in _defaults(cls, command).items():
        if _lacks(cls, name):
            setattr(cls, name, default)
    for name in ("usage", "description"):  # read from the class: a list of lanes makes none
        if not isinstance(getattr(cls, name), str):
            raise ValueError(f"Lane '{command}' ({cls.__name__}): {name} must be a text of the class.")
    _plugins[command] = cast("type[LanePlugin]", cls)
    return cls


def register_full_lane(cls: C) -> C:
    """Class decorator for a lane of the richer contract (`Lane`), made without arguments; it has a `name`."""
    command = _free(getattr(cls, "name", None))
    missing = [name for name in ("usage", "description", *_METHODS) if not hasattr(cls, name)]
    if missing:
        raise ValueError(f"Lane '{command}' ({cls.__name__}) has no {', '.join(missing)}.")
    _full[command] = cast("Callable[[], Lane]", cls)
    return cls


def get_lane_class(command: str) -> type[LanePlugin] | None:
    """The class that was registered for a command, in any case of letters."""
    return _plugins.get(command.lower())


def get_all_lanes() -> dict[str, type[LanePlugin]]:
    """All registered lane plugins by command."""
    return dict(_plugins)


def get_full_lanes() -> dict[str, Callable[[], Lane]]:
    """All registered lanes of the richer contract by command: each call makes a lane."""
    return dict(_full)


class RegisteredLanes:
    """What is registered now, to return to: a module whose import fails leaves nothing behind."""

    def __init__(self) -> None:
        self._plugins = dict(_plugins)
        self._full = dict(_full)

    def restore(self) -> None:
        for registry, before in ((_plugins, self._plugins), (_full, self._full)):
            cast("dict[str, Any]", registry).clear()
            cast("dict[str, Any]", registry).update(before)

    def since(self) -> tuple[str, ...]:
        """The commands that were registered since, in order."""
        known = {*self._plugins, *self._full}
        return tuple(command for command in (*_plugins, *_full) if command not in known)


# ── defaults ───────────────────────────────────────────────────────────────

_METHODS = ("probe", "open", "begin", "steer", "interrupt", "answer", "close")
"""Of `Lane`. Its properties may be attributes that a lane only has once it is made."""


def hears_interrupts(plugin: LanePlugin) -> bool:
    """Whether it has an `interrupt` of its own."""
    return getattr(type(plugin), "interrupt", None) is not _interrupt


def _lacks(cls: type, name: str) -> bool:
    """What a class only inherits from `LanePlugin` has no body."""
    member = getattr(cls, name, None)
    return member is None or member is getattr(LanePlugin, name, None)


def _free(command: object) -> str:
    """The command as a name. Raises `ValueError` if no lane may have it, or one has it already."""
    name = normal(command)
    holder = _plugins.get(name) or _full.get(name)
    if holder is not None:
        called = getattr(holder, "__name__", "another lane")
        raise ValueError(f"Lane command '{name}' already registered by {called}")
    return name


def _defaults(cls: type, command: str) -> dict[str, object]:
    own_lines = (cls.__doc__ or "").strip().splitlines()
    return {
        "usage": f"Usage: /{command} <task>",
        "description": own_lines[0] if own_lines else f"Run a task with {command}",
        "start": _start,
        "interrupt": _interrupt,
        "stop": _stop,
        "is_busy": False,
        "wants_user_input": False,
        "handle_user_input": _handle_user_input,
    }


async def _start(self: object, cwd: str, platform: object, formatter: object) -> None:
    """Nothing to get ready."""


async def _interrupt(self: object) -> None:
    """Hears no interrupt: who sends one cancels the turn."""


async def _stop(self: object) -> None:
    """Nothing to end."""


async def _handle_user_input(self: object, text: str) -> None:
    """Never asks."""
