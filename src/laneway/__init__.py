"""Laneway: OpenAI Codex in Claude Code, your editor, your team and your shell."""

__version__ = "0.1.0"
