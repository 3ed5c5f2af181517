"""What a client is told while Codex works."""
