"""Giving back what jobs found: planned, written down first, all paths or none, finished after a crash."""
