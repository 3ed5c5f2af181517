"""Laneway: OpenAI Codex and Claude Code, working together: chat, background jobs, editors, MCP."""

__version__ = "0.1.0"
