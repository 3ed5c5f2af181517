"""Giving back what jobs found: plan, journal, all paths or none, finished after a crash, undone on request."""
