"""`laneway version`, also `laneway --version`: prints the versions of Laneway and Codex."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from laneway import __version__
from laneway.base.errors import BinaryError, SettingError
from laneway.cli.command_settings import settings_for
from laneway.codex import binary, locate


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show the versions of Laneway and of the Codex it uses."
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    parser.add_argument("--json", action="store_true", help="as data, for programs")
    parser.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    data: dict[str, object] = {"laneway": __version__, "codex": None}
    line = f"laneway {__version__}"
    try:
        settings = settings_for(options, Path())
        codex = locate.find(options.codex_bin, configured=settings.codex_bin)
        version = binary.probe(codex)
        data |= {"codex": binary.spell(version), "path": codex.path, "source": codex.source}
        note = binary.untested_note(version)
        line += f"\ncodex {binary.spell(version)}{note}, {codex.path} (from {codex.source})"
    except (BinaryError, SettingError) as error:
        data["problem"] = str(error)
        line += f"\nno codex: {error}"
    print(json.dumps(data) if options.json else line)
    return 0
