"""`laneway ask`: one turn with Codex from a shell, for a person at a terminal or for a pipe."""
