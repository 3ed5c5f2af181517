"""The page in the browser: its HTTP server, its shell, and the events that it tells browsers."""
