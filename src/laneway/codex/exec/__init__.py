"""One run of `codex exec`: its command line, its config, its events, its tokens, how it ended."""
