"""The Codex engine: drives the real `codex app-server` behind the ports of `laneway.core`."""
