"""Snapshots of a work tree in a repository of our own: nothing of the user's is written."""
