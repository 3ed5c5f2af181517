"""Background jobs: Codex workers side by side in one work tree, with git as the judge of their edits."""
