"""Basics for all other packages: errors, settings, log, clock, paths, ids, repository facts."""
