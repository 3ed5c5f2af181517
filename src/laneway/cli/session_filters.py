"""The filter flags of `laneway sessions`, applied to a session."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway.cli.session_list import KnownSession


def passes_filters(options: argparse.Namespace, session: KnownSession) -> bool:
    """Whether a session passes the filters of the command line."""
    return (
        options.identity in (None, session.identity)
        and options.status in (None, session.status)
        and options.source in (None, session.source)
        and options.repo in (None, session.repo_name, session.repo_root)
    )
