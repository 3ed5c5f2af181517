"""Renders the events of a session as `session/update` notifications."""
