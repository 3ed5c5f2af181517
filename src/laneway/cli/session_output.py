"""Prints the table of sessions for a person, and the problems of reading them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laneway.base.plain import plain
from laneway.store.stamps import utc_now
from laneway.terminal import Style
from laneway.terminal.style import width

if TYPE_CHECKING:
    from laneway.cli.session_list import KnownSession


def print_table(sessions: Sequence[KnownSession]) -> None:
    from laneway.cli.session_table import table

    style, columns = Style(sys.stdout), width(sys.stdout)
    home = os.path.expanduser("~")
    for line in table(sessions, now=utc_now(), columns=columns, style=style, home=home):
        print(line)


def print_problems(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"laneway: {plain(problem)}", file=sys.stderr)
