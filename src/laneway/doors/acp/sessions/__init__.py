"""How a session is opened, what it is set to, and its life."""
