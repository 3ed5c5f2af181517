"""The protocol of app-server as Codex itself describes it. Generated: see `make protocol`."""
