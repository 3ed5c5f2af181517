"""Slash commands of a conversation: `/status`, `/review`, `/undo` and the others, for any front end."""
