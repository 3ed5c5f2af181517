"""What a client is told of what was: sessions, and their conversations."""
