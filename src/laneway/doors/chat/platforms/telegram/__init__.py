"""Conversations on Telegram: a thin client of the Bot API, and what it makes of posts and updates."""
