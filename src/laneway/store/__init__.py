"""What we keep: session registry, audit log, summaries, identity locks, one SQLite file.

Crash-safe and private. `store.Store` is the way in to the files of a team, `database.Database` to SQLite.
"""
