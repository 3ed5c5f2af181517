"""Versions of Claude Code: the oldest that works, and those that are tested.

Starts no process on a start-up path: the version is in the answer to the handshake; only `probe` runs
the binary. The binary is found by `laneway.claude.locate`.
"""

from __future__ import annotations

from laneway.base.program_versions import ProgramVersions, parse_version, spell
from laneway.claude.locate import CLAUDE_CODE

__all__ = ["OLDEST", "TESTED", "cannot_run", "check_age", "parse_version", "probe", "spell", "untested_note"]

OLDEST = (2, 1, 305)
"""Some older ones decide by themselves what may be done unasked, and lack what we rely on."""
TESTED = ("2.1.327", "2.1.326", "2.1.325", "2.1.316", "2.1.305")
"""Versions that `make test` and `make test-peers` have run."""

_VERSIONS = ProgramVersions(CLAUDE_CODE, OLDEST, TESTED, upgrade="claude update", sign="Claude Code")
probe = _VERSIONS.probe
cannot_run = _VERSIONS.cannot_run
check_age = _VERSIONS.check_age
untested_note = _VERSIONS.untested_note
