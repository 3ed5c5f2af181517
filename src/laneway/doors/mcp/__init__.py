"""The MCP door: Codex as tools of Claude and of every other MCP client."""
