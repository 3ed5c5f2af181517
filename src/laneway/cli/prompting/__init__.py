"""Asking a person at a terminal: the only place of the command line that reads what somebody types.

Nobody approves by accident: what was typed before a question stood on the screen is thrown away, a
text of others cannot look like a question of ours, and whatever is no clear yes is a no.
"""
