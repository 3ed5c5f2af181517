"""The history of ACP sessions: the list of sessions, and the replay of a session's conversation."""
