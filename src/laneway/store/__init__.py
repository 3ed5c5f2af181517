"""Files on disk: session registry, audit log, summaries, identity locks, one SQLite database.

Crash-safe and private. Start at `store.Store` for the files of a team, at `database.Database` for SQLite.
"""
