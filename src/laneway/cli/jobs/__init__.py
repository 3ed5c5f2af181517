"""`laneway jobs`: background jobs for people and scripts; with `--json` what the MCP tools answer."""
