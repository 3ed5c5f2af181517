"""Benchmarks: Laneway beside the raw Codex, as ratios within one run: `python -m bench`.

Every number is measured in a fresh process, so that no side pays for another's imports, garbage
or warm caches. No test asserts these numbers: the table shows what was measured, and which goal
was missed by how much.
"""
