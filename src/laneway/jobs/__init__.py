"""Background jobs: Codex workers side by side in one work tree; git shows who changed what."""
