"""The commands of a conversation: `/status`, `/review`, `/undo` and the others."""
