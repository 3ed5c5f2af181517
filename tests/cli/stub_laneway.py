"""A machine with a `laneway` on its PATH that is the stub server: what is written into configs starts it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

import laneway as package
from tests.cli.support import Ran, start

STUB = Path(__file__).with_name("mcp_stub.py")


class Machine(msgspec.Struct, frozen=True):
    home: Path
    laneway: str
    """The path of the stub."""

    async def run(self, *words: str, folder: Path | None = None) -> Ran:
        """The real `laneway` in this home and folder; the one that it finds and registers is the stub."""
        env = {
            "HOME": str(self.home),
            "PATH": f"{os.path.dirname(self.laneway)}:/usr/bin:/bin",
            "PYTHONPATH": str(Path(package.__file__).parent.parent),
        }
        async with asyncio.timeout(60):
            process = await start(*words, env=env, cwd=str(folder or self.home))
            out, err = await process.communicate()
            assert process.returncode is not None
            return Ran(process.returncode, out, err)


def machine(folder: Path, *flags: str) -> Machine:
    """`flags` are the stub's: how it misbehaves."""
    path = folder / "bin" / "laneway"
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STUB}" {" ".join(flags)} "$@"\n')
    path.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    return Machine(home, str(path))
