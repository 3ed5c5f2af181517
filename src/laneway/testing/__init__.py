"""Tools for tests, ours and yours: engines and clocks that a test drives, misbehaving servers.

Public and shipped; nothing inside Laneway imports it.
"""
