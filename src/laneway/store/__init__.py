"""What we keep: session registry, audit log, summaries, identity locks, one SQLite file. Crash-safe, private."""
