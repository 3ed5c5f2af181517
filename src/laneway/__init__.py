"""Laneway: OpenAI Codex as a colleague wherever people and agents already work."""

__version__ = "0.1.0"
