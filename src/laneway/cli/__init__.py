"""The command line: one module per command, and the only place that composes the rest."""
