"""How this Laneway was installed, and the command lines that add a package to it or remove it.

Used by every text that advises an installation: a `pip install` into another environment than the
one we run in helps nobody. Reads a few small files of that environment; runs nothing. Laneway is on
no package index, so it is named by the source that it was installed from.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

PACKAGES = {
    "chat": ("prompt_toolkit", "rich"),
    "claude": ("claude-agent-sdk",),
    "codex": ("openai-codex-cli-bin",),
    "discord": ("discord.py",),
    "http": ("uvicorn",),
    "images": ("pillow", "pygments"),
    "ray": ("ray",),
    "telegram": ("aiohttp",),
    "terminal": ("rich",),
    "web": ("uvicorn", "markdown-it-py"),
    "ws": ("websockets",),
}
"""The packages that each of our extras installs."""
NAME = "laneway"
UV_CACHES = frozenset({"archive-v0", "builds-v0", "environments-v2"})
"""Folders of uv's cache from which `uvx` runs packages that are not installed."""

How: TypeAlias = Literal["pipx", "uv tool", "temporary", "pip", "source"]
"""`temporary`: by `uvx` or `pipx run`, gone with their cache. `source`: not installed at all."""


class Installation(msgspec.Struct, frozen=True):
    """One installation of Laneway."""

    how: How
    python: str = ""
    """The interpreter that runs us."""
    source: str = NAME
    """What we were installed from: a wheel, a folder or an address."""
    is_editable: bool = False
    environment: str = NAME
    """Its name in pipx."""
    extras: tuple[str, ...] = ()
    """Of a `uv tool`: the extras that were requested."""
    beside: tuple[str, ...] = ()
    """Of a `uv tool`: further packages that were requested. It removes those that are not requested again."""
    runner: tuple[str, ...] = ("uvx", "--from")
    """Of a temporary one: the words before its source."""
    has_pip: bool = True
    is_managed: bool = False
    """Whether the system's own package manager claims this Python (PEP 668)."""

    def adding(self, extra: str, *, upgrade: bool = False) -> str:
        """The command line that installs the packages of one of our extras."""
        packages, newer = PACKAGES[extra], ["-U"] if upgrade else []
        match self.how:
            case "pipx" if upgrade:
                return shlex.join(["pipx", "runpip", self.environment, "install", "-U", *packages])
            case "pipx":
                return shlex.join(["pipx", "inject", self.environment, *packages])
            case "uv tool" if self._can_be_named:
                requirements = [
                    word for requirement in (*packages, *self.beside) for word in ("--with", requirement)
                ]
                return shlex.join(["uv", "tool", "install", *newer, *requirements, self._named(self.extras)])
            case "uv tool":  # what it was installed from is gone
                return shlex.join(["uv", "pip", "install", *newer, "--python", self.python, *packages])
            case "temporary":
                return shlex.join([*self.runner, self._named((extra,)), NAME])
            case _:
                return self._pip("install", *newer, *packages)

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
        """The command lines that install a permanent copy, outside of any cache."""
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
    """How the Laneway of this process was installed."""
    environment, origin = Path(prefix), _origin(package)
    is_pipx = (environment / "pipx_metadata.json").exists()
    if UV_CACHES & set(environment.parts):
        return Installation("temporary", python, origin.source)
    if is_pipx and environment.parent.name == ".cache":
        return Installation("temporary", python, origin.source, runner=("pipx", "run", "--spec"))
    if is_pipx:
        return Installation("pipx", python, origin.source, environment=environment.name)
    if (environment / "uv-receipt.toml").exists():
        return _uv_tool(environment / "uv-receipt.toml", python, origin.source)
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
        dist = distribution(NAME)
        url: Any = json.loads(dist.read_text("direct_url.json") or "{}")
        address = str(url.get("url", ""))
        is_editable = bool(url.get("dir_info", {}).get("editable"))
    except (PackageNotFoundError, ValueError, AttributeError):
        return _Origin()
    source = unquote(urlsplit(address).path) if address.startswith("file:") else address or NAME
    is_this_package = Path(str(dist.locate_file(NAME))).resolve() == package.resolve()
    return (
        _Origin(source, is_editable or is_this_package, is_editable)
        if is_editable or is_this_package
        else _Origin()
    )


def _uv_tool(receipt: Path, python: str, source: str) -> Installation:
    """The tool's recorded requirements, so that installing it again removes nothing."""
    import tomllib

    try:
        requirements: Any = tomllib.loads(receipt.read_text())["tool"]["requirements"]
        own = next(requirement for requirement in requirements if requirement["name"] == NAME)
        beside = tuple(
            str(requirement["name"]) for requirement in requirements if requirement["name"] != NAME
        )
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
