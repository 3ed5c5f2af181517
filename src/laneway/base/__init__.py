"""What every ring may use: errors, clock, paths, ids, repository facts. Imports nothing of ours."""
