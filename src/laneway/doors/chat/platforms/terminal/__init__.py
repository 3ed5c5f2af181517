"""Conversations in a terminal: interactive, as plain lines in a dumb terminal, and in a pipe."""
