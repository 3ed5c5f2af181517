"""The engines that Laneway knows: their keys in settings and records, their names in sentences."""

from __future__ import annotations

CODEX = "Codex"
CLAUDE = "Claude"

BACKENDS = {"codex": CODEX, "claude": CLAUDE}
"""By key: what settings, calls and records say; the name that people read."""
DEFAULT_BACKEND = "codex"
