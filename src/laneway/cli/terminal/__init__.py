"""Drawing for a person at a terminal: colours, the events of a turn, Markdown, a status line.

What a model, a command or a repository says never reaches a terminal raw: an escape sequence in a
command could hide that very command from whoever is asked to approve it, and a line that looks like
ours could answer in our place. See `laneway.cli.terminal.foreign`.
"""

from __future__ import annotations

from laneway.cli.terminal.style import Style

__all__ = ["Style"]
