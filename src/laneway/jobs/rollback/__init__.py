"""Rollbacks of jobs' edits: planned, written down first, all paths or none, finished after a crash."""
