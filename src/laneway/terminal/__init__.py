"""Output on a terminal: colours, the events of a turn, Markdown, a status line.

Text of a model, a command or a repository never reaches a terminal raw: an escape sequence in a
command could hide that very command from the person who is asked to approve it, and a line that
looks like ours could deceive them. See `laneway.terminal.foreign`.
"""

from __future__ import annotations

from laneway.terminal.style import Style

__all__ = ["Style"]
