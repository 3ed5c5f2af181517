"""Definition of a tool without its handler: what a server lists before anything that runs tools is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from laneway.core.tools import Handler, Tool


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool without its handler."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    is_read_only: bool = False

    def tool(self, handler: Handler) -> Tool:
        from laneway.core.tools import Tool  # not loaded where only the definitions are needed

        return Tool(self.name, self.description, self.schema, handler, self.title, self.is_read_only)
