"""What must happen before the rest of us is loaded.

Codex is started: it needs as long to start as our imports do. Only for commands that always need
it, and only in the plain case, where nothing but the environment can choose which one. Everything
else starts it when it is needed, as ever. What is started here and not taken ends with this
process: its guardian sees to that. And servers on pipes are spared what they never use.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway.wire.launch import Launched

COMMANDS = frozenset({"acp", "ask"})
_CHOOSING = ("--rehearse", "--codex-bin", "-C", "--cwd", "--cd", "-h", "--help", "--login")
"""Words of a command line that make it somebody else's decision, or nobody's."""

_started: tuple[str, Launched] | None = None


def begin(arguments: list[str]) -> None:
    """Start app-server if this command line will surely want the one that we would find."""
    global _started
    if not arguments or arguments[0] not in COMMANDS or not os.environ.get("HOME", "").startswith("/"):
        return
    if any(word.startswith(_CHOOSING) for word in arguments[1:]) or _is_configured():
        return
    from laneway.base.errors import BinaryError
    from laneway.codex.hello import FIRST
    from laneway.codex.locate import child_environment, find
    from laneway.wire.launch import launch

    try:
        found = find()
        launched = launch([found.path, "app-server"], env=child_environment(os.environ), first=FIRST)
        _started = (found.path, launched)
    except (BinaryError, OSError):
        _started = None  # the command says what is wrong, when it gets there


def spare_imports(arguments: list[str]) -> None:
    """Load asyncio without `ssl`, and msgspec without `typing_extensions`: a fifth of a server's start.

    For those who only ever talk through pipes. Both look for these once, when they are loaded, and
    do without where there are none.
    """
    if arguments[:1] not in (["acp"], ["mcp"], ["mcp-server"]):
        return
    if any(word.startswith(("--http", "--ws")) for word in arguments):
        return
    _without("ssl", "asyncio")
    _without("typing_extensions", "msgspec")


def _without(spared: str, loaded: str) -> None:
    if spared in sys.modules or loaded in sys.modules:
        return
    # How Python spells "cannot be imported".
    sys.modules[spared] = None  # type: ignore[assignment]
    try:
        __import__(loaded)
    finally:
        del sys.modules[spared]  # whoever else wants it gets it


async def load(module: str) -> None:
    """Import the rest beside the event loop, which goes on serving; no look for garbage, as in `main`."""
    import asyncio

    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, module)
    finally:
        gc.freeze()
        gc.enable()


def take(path: str) -> Launched | None:
    """What was started, once, if it is this executable."""
    global _started
    if _started is None or _started[0] != path:
        return None
    (_, launched), _started = _started, None
    return launched


def _is_configured() -> bool:
    """Whether a settings file could name another Codex: then they must be read first."""
    if any(os.environ.get(name) for name in ("LANEWAY_CONFIG", "ATM_CONFIG")):
        return True
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME", "")
    own = config if config.startswith("/") else os.path.join(home, ".config")
    shared = os.path.join(os.environ.get("ATM_HOME", "").strip() or home, ".config")
    if any(os.path.exists(f"{folder}/config.toml") for folder in (f"{own}/laneway", f"{shared}/atm")):
        return True
    folder = os.getcwd()
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in (".laneway.toml", ".atm.toml")):
            return True
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
