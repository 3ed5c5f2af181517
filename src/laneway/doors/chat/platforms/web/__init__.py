"""The chat in a browser: what the page asks and is told of conversations."""
