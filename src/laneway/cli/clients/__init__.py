"""Configs of MCP clients and editors: where they are, what an entry looks like, and careful edits."""
