"""What users are told of a plugin's exception: one line, no secret, nothing that hides or moves text."""

from __future__ import annotations

from laneway.base.plain import label
from laneway.base.redact import redact

MAX_WORDS = 500


def words_of(error: BaseException) -> str:
    """Its own words if it has any, else its kind."""
    said = str(error).strip()
    return label(redact(said or type(error).__name__), MAX_WORDS)
