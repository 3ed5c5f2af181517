"""How this Laneway was installed, and the command lines that add a package to it or remove it.

Every text that advises an installation asks here: a `pip install` that goes into another
environment than the one we run in helps nobody. Reads a few small files of that environment;
runs nothing. Laneway is on no package index, so what must be named again is named by where it
came from.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

PACKAGES = {"codex": "openai-codex-cli-bin", "http": "uvicorn", "terminal": "rich", "ws": "websockets"}
"""What each extra of ours brings."""
NAME = "laneway"
UV_CACHES = frozenset({"archive-v0", "builds-v0", "environments-v2"})
"""Folders of uv's cache in which `uvx` runs what is not installed."""

How: TypeAlias = Literal["pipx", "uv tool", "temporary", "pip", "source"]
"""`temporary`: by `uvx` or `pipx run`, gone with their cache. `source`: not installed at all."""


class Installation(msgspec.Struct, frozen=True):
    how: How
    python: str = ""
    """The interpreter that runs us."""
    source: str = NAME
    """What we were installed from: a wheel, a folder or an address."""
    is_editable: bool = False
    environment: str = NAME
    """What pipx calls it."""
    extras: tuple[str, ...] = ()
    """Of a `uv tool`: those it was asked for."""
    beside: tuple[str, ...] = ()
    """Of a `uv tool`: the packages it was asked for beside us. It removes what is not asked for again."""
    runner: tuple[str, ...] = ("uvx", "--from")
    """Of what is temporary: the words before its source."""
    has_pip: bool = True
    is_managed: bool = False
    """Whether the system's own package manager claims this Python (PEP 668)."""

    def adding(self, extra: str, *, upgrade: bool = False) -> str:
        """The command line that brings what an extra of ours needs."""
        package, newer = PACKAGES[extra], ["-U"] if upgrade else []
        match self.how:
            case "pipx" if upgrade:
                return shlex.join(["pipx", "runpip", self.environment, "install", "-U", package])
            case "pipx":
                return shlex.join(["pipx", "inject", self.environment, package])
            case "uv tool" if self._can_be_named:
                asked = [word for each in (package, *self.beside) for word in ("--with", each)]
                return shlex.join(["uv", "tool", "install", *newer, *asked, self._named(self.extras)])
            case "uv tool":  # what it was installed from is gone
                return shlex.join(["uv", "pip", "install", *newer, "--python", self.python, package])
            case "temporary":
                return shlex.join([*self.runner, self._named((extra,)), NAME])
            case _:
                return self._pip("install", *newer, package)

    def removing(self) -> str | None:
        """The command line that uninstalls us; none where there is nothing to uninstall."""
        match self.how:
            case "pipx":
                return shlex.join(["pipx", "uninstall", self.environment])
            case "uv tool":
                return f"uv tool uninstall {NAME}"
            case "pip":
                return self._pip("uninstall", NAME)
            case _:
                return None

    def staying(self) -> str:
        """The command lines that install a copy which no cleaning of a cache removes."""
        named = shlex.quote(self.source)
        return f"`uv tool install {named}` or `pipx install {named}`"

    @property
    def _can_be_named(self) -> bool:
        return not self.source.startswith("/") or os.path.exists(self.source)

    def _named(self, extras: tuple[str, ...]) -> str:
        return f"{self.source}[{','.join(extras)}]" if extras else self.source

    def _pip(self, action: str, *words: str) -> str:
        managed = ["--break-system-packages"] if self.is_managed else []
        if self.has_pip:
            return shlex.join([self.python, "-m", "pip", action, *managed, *words])
        return shlex.join(["python3", "-m", "pip", "--python", self.python, action, *managed, *words])


def installed_how(
    prefix: str = sys.prefix, python: str = sys.executable, package: Path = Path(__file__).parent.parent
) -> Installation:
    """How the Laneway of this process came here."""
    here, origin = Path(prefix), _origin(package)
    is_pipx = (here / "pipx_metadata.json").exists()
    if UV_CACHES & set(here.parts):
        return Installation("temporary", python, origin.source)
    if is_pipx and here.parent.name == ".cache":
        return Installation("temporary", python, origin.source, runner=("pipx", "run", "--spec"))
    if is_pipx:
        return Installation("pipx", python, origin.source, environment=here.name)
    if (here / "uv-receipt.toml").exists():
        return _uv_tool(here / "uv-receipt.toml", python, origin.source)
    return Installation(
        "pip" if origin.is_installed else "source",
        python,
        origin.source,
        origin.is_editable,
        has_pip=_has_pip(),
        is_managed=_is_managed(prefix),
    )


class _Origin(msgspec.Struct, frozen=True):
    source: str = NAME
    is_installed: bool = False
    is_editable: bool = False


def _origin(package: Path) -> _Origin:
    """Where the installed distribution came from, if it is this very package."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        found = distribution(NAME)
        url: Any = json.loads(found.read_text("direct_url.json") or "{}")
        address = str(url.get("url", ""))
        is_editable = bool(url.get("dir_info", {}).get("editable"))
    except (PackageNotFoundError, ValueError, AttributeError):
        return _Origin()
    source = unquote(urlsplit(address).path) if address.startswith("file:") else address or NAME
    is_this = Path(str(found.locate_file(NAME))).resolve() == package.resolve()
    return _Origin(source, is_editable or is_this, is_editable) if is_editable or is_this else _Origin()


def _uv_tool(receipt: Path, python: str, source: str) -> Installation:
    """What the tool was asked to be, so that asking again takes nothing away."""
    import tomllib

    try:
        asked: Any = tomllib.loads(receipt.read_text())["tool"]["requirements"]
        own = next(each for each in asked if each["name"] == NAME)
        beside = tuple(str(each["name"]) for each in asked if each["name"] != NAME)
        extras = tuple(str(extra) for extra in own.get("extras", ()))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return Installation("uv tool", python, source)
    return Installation("uv tool", python, source, extras=extras, beside=beside)


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _is_managed(prefix: str) -> bool:
    import sysconfig

    return prefix == sys.base_prefix and os.path.exists(f"{sysconfig.get_path('stdlib')}/EXTERNALLY-MANAGED")
