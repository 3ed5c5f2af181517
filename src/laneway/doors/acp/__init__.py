"""ACP server: Codex in any editor that speaks the Agent Client Protocol."""
