"""The Claude engine: drives the real Claude Code, one process for each thread."""
