"""Tools for tests, ours and yours: hand-driven engines and clocks, misbehaving children.

Public and shipped; nothing inside Laneway imports it.
"""
