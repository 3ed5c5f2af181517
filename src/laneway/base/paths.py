"""Where things live on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_home(environment: Mapping[str, str] | None = None) -> Path:
    """Our folder for what may be lost: `$XDG_CACHE_HOME/laneway`."""
    environment = os.environ if environment is None else environment
    named = environment.get("XDG_CACHE_HOME", "")
    # The specification wants relative values ignored.
    base = Path(named) if named.startswith("/") else Path.home() / ".cache"
    return base / "laneway"
