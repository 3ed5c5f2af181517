"""The MCP server: Codex as tools for Claude Code and every other MCP client, over stdio and HTTP."""
