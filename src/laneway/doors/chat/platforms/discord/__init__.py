"""Discord: a thread for each conversation, slash commands, buttons and dialogs, on discord.py."""
