"""Prompts at a terminal: reads what a person types as the answer to a question.

Nobody approves by accident: what was typed before a question was shown is discarded, foreign text
cannot look like a question of ours, and whatever is not a clear yes is a no.
"""
