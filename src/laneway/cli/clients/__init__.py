"""Other programs' configs: where they are, how an entry looks there, and edits that touch nothing else."""
