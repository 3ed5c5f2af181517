"""Events of a session as `session/update` notifications."""
