"""Bytes and processes: frames, JSON-RPC both ways, supervised process trees. Knows no vendor."""
