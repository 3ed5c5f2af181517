"""The ways in: each door speaks one protocol to its clients and is handed what it opens onto."""
