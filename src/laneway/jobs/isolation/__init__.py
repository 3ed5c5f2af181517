"""Write jobs apart from the user's work tree: a layer above it, or a copy of it, and the merge back."""
