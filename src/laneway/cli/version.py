"""`laneway version`, also `laneway --version`: ours and Codex's."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from laneway import __version__
from laneway.base.errors import BinaryError, SettingError
from laneway.cli.chosen import settings_for
from laneway.codex import binary, locate


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show the versions of Laneway and of the Codex it uses."
    parser.add_argument(
        "--codex-bin", metavar="PATH", help="the codex executable (default: found automatically)"
    )
    parser.add_argument("--json", action="store_true", help="as data, for programs")
    parser.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    told: dict[str, object] = {"laneway": __version__, "codex": None}
    line = f"laneway {__version__}"
    try:
        settings = settings_for(options, Path())
        found = locate.find(options.codex_bin, configured=settings.codex_bin)
        version = binary.probe(found)
        told |= {"codex": binary.spell(version), "path": found.path, "source": found.source}
        line += (
            f"\ncodex {binary.spell(version)}{binary.word_on(version)}, {found.path} (from {found.source})"
        )
    except (BinaryError, SettingError) as error:
        told["problem"] = str(error)
        line += f"\nno codex: {error}"
    print(json.dumps(told) if options.json else line)
    return 0
