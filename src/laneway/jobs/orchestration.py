"""The instructions for an agent that orchestrates jobs, as they are packaged.

The file beside this one is docs/reference/CODEX_SUBAGENTS_ORCHESTRATION.md: a link in the repository, a copy
in a wheel. It is read when somebody wants it.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("CODEX_SUBAGENTS_ORCHESTRATION.md")


def instructions() -> str:
    """The page, in Markdown."""
    return PAGE.read_text(encoding="utf-8")
