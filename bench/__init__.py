"""Measures Laneway beside the raw Codex, as ratios within one run: `python -m bench`.

Every number is taken in a fresh process of its own, so that no side pays for another's
imports, garbage or warm caches. Nothing here is asserted by a test: the table says what
was seen, and which goal was missed by how much.
"""
