"""Scripted model servers on loopback, so that the real Codex runs without an account and a network."""
