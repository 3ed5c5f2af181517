"""Scripted models on loopback, so that the real Codex runs with no account and no network."""
