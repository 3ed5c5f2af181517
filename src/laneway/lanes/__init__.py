"""Lanes: agents that take turns in one conversation, and how to write one."""
