"""The command line: one module per command. Reads flags and prints; `laneway.app` opens what they need."""
