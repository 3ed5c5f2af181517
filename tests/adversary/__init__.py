"""Attacks that must fail, on the real program."""
