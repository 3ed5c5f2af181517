"""Imports the modules of lane plugins that the user's own settings name, and makes their lanes.

Imports exactly those, and nothing else. What goes wrong is kept for `/lanes` and `laneway doctor`, and
keeps nobody else from loading: a module whose import fails leaves no lane behind.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Generator, Sequence

import msgspec

from laneway.base.plain import code_label
from laneway.core.ports import Clock
from laneway.lanes.adapter import PluginLane
from laneway.lanes.contract import Lane, LaneAbilities
from laneway.lanes.registry import RegisteredLanes, get_all_lanes, get_full_lanes
from laneway.lanes.words import words_of

_log = logging.getLogger(__name__)
_loaded: dict[str, tuple[str, ...]] = {}
"""Commands by module, in this process: Python imports a module once."""


class LaneProblem(msgspec.Struct, frozen=True):
    """A module that is no working plugin."""

    module: str
    problem: str
    """One sentence."""


class LoadedLanes(msgspec.Struct, frozen=True):
    commands: dict[str, tuple[str, ...]]
    """Of the lanes, by module."""
    problems: tuple[LaneProblem, ...] = ()


def load_lanes(modules: Sequence[str]) -> LoadedLanes:
    """Import these modules in this order; one that is imported already stays as it is."""
    commands: dict[str, tuple[str, ...]] = {}
    problems: list[LaneProblem] = []
    for module in dict.fromkeys(modules):
        if module not in _loaded:
            problem = _load(module)
            if problem:
                problems.append(LaneProblem(module, problem))
                continue
        commands[module] = _loaded[module]
    return LoadedLanes(commands, tuple(problems))


def make_lanes(loaded: LoadedLanes, clock: Clock | None = None) -> dict[str, Lane]:
    """A lane for each command, for one conversation."""
    return {
        command: make_lane(command, clock) for commands in loaded.commands.values() for command in commands
    }


def make_lane(command: str, clock: Clock | None = None) -> Lane:
    """A lane that was registered. Raises `KeyError` for a command that was not."""
    full = get_full_lanes().get(command)
    return PluginLane(get_all_lanes()[command], clock) if full is None else full()


def _load(module: str) -> str | None:
    """Why it cannot be used; none if it can."""
    shown = code_label(module)
    before = RegisteredLanes()
    try:
        # A plugin that prints as it is imported must not print into our output.
        with _without_folder(), contextlib.redirect_stdout(sys.stderr):
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        before.restore()
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            return f"There is no module {shown}: install it into the environment of Laneway."
        return f"The module {shown} cannot be imported: {words_of(error)}."
    except (Exception, SystemExit) as error:  # noqa: BLE001  it is one plugin's failure
        before.restore()
        _log.debug("the lane plugin %s cannot be imported", module, exc_info=error)
        words = words_of(error).rstrip(".")
        return f"The module {shown} cannot be imported: {type(error).__name__}: {words}."
    commands = before.since()
    if not commands:
        return f"The module {shown} registers no lane."
    for command in commands:
        problem = _problem_of(command)
        if problem is not None:
            before.restore()
            return f"The lane {command} of the module {shown} cannot be made: {problem}."
    _loaded[module] = commands
    return None


def _problem_of(command: str) -> str | None:
    """Why a lane cannot be made, or shown in a list: each conversation makes its own, and could not go on.

    A plugin is not made before its first turn, which fails alone; of it only its class is asked.
    """
    try:
        lane = make_lane(command)
        facts = (lane.name, lane.usage, lane.description)
        abilities = lane.abilities
    except (Exception, SystemExit) as error:  # noqa: BLE001  it is one lane's failure
        _log.debug("the lane %s cannot be made", command, exc_info=error)
        return f"{type(error).__name__}: {words_of(error)}"
    if not all(isinstance(fact, str) for fact in facts) or not isinstance(abilities, LaneAbilities):
        return "its name, usage and description must be texts, and its abilities LaneAbilities"
    if lane.name.lower() != command:
        return f"it calls itself {code_label(lane.name)}"
    return None


@contextlib.contextmanager
def _without_folder() -> Generator[None]:
    """Nothing is imported from the folder that we happen to be in, unless PYTHONPATH names it.

    `python -m laneway` puts it in front: a repository could bring a module of a plugin's name.
    """
    here = os.path.realpath(os.curdir)
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    wanted = {os.path.realpath(path) for path in named if path}
    before = list(sys.path)
    if here not in wanted:
        sys.path[:] = [path for path in before if path and os.path.realpath(path) != here]
    try:
        yield
    finally:
        sys.path[:] = before
