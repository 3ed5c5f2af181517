"""Prompts at a terminal: the only package of the command line that reads what a person types.

Nobody approves by accident: what was typed before a question was shown is discarded, foreign text
cannot look like a question of ours, and whatever is not a clear yes is a no.
"""
