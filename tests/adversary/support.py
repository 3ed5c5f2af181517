"""What the attacks share: how long anything may take."""

from __future__ import annotations

DEADLINE_S = 60.0
"""For what takes a second; the machine may be busy."""
