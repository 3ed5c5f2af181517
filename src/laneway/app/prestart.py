"""Start-up work before the rest of Laneway is imported: starts app-server early, skips unused imports.

Codex takes as long to start as our imports do, so both run at once. Only for commands that always
need it, and only in the plain case, where nothing but the environment can choose the binary. In all
other cases Codex is started when it is needed. A process that was started here and is not taken ends
with this one, through its guardian. Servers on pipes skip modules that they never use.
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
"""Flags that choose another Codex, or none at all."""

_started: tuple[str, Launched] | None = None


def begin(arguments: list[str]) -> None:
    """Start app-server if this command line will certainly need the one that we would find."""
    global _started
    if not arguments or arguments[0] not in COMMANDS or not os.environ.get("HOME", "").startswith("/"):
        return
    if any(word.startswith(_CHOOSING) for word in arguments[1:]) or _is_configured():
        return
    from laneway.base.errors import BinaryError
    from laneway.codex.hello import HANDSHAKE
    from laneway.codex.locate import child_environment, find
    from laneway.wire.launch import launch

    try:
        binary = find()
        launched = launch([binary.path, "app-server"], env=child_environment(os.environ), first=HANDSHAKE)
        _started = (binary.path, launched)
    except (BinaryError, OSError):
        _started = None  # the command itself will report what is wrong


def spare_imports(arguments: list[str]) -> None:
    """Load asyncio without `ssl`, and msgspec without `typing_extensions`: a fifth of a server's start.

    For servers that only use pipes. Both modules look for these once, when they are imported, and
    work without them.
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
        del sys.modules[spared]  # other importers get the real one


async def load(module: str) -> None:
    """Import a module while the event loop goes on serving; without garbage collection, as in `main`."""
    import asyncio

    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, module)
    finally:
        gc.freeze()
        gc.enable()


def take(path: str) -> Launched | None:
    """The process that was started, once, if it runs this executable."""
    global _started
    if _started is None or _started[0] != path:
        return None
    (_, launched), _started = _started, None
    return launched


def _is_configured() -> bool:
    """Whether a settings file could name another Codex: then it must be read first."""
    if any(os.environ.get(name) for name in ("LANEWAY_CONFIG", "ATM_CONFIG")):
        return True
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME", "")
    config_folder = config if config.startswith("/") else os.path.join(home, ".config")
    atm_folder = os.path.join(os.environ.get("ATM_HOME", "").strip() or home, ".config")
    if any(
        os.path.exists(f"{folder}/config.toml")
        for folder in (f"{config_folder}/laneway", f"{atm_folder}/atm")
    ):
        return True
    folder = os.getcwd()
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in (".laneway.toml", ".atm.toml")):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
