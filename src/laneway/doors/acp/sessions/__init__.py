"""The sessions of ACP clients: opening, options, prompts and commands."""
