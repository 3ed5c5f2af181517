"""Chat: Claude, Codex and other lanes in one conversation, on any platform."""
