"""The draft of ACP 2, for those who start `laneway acp --v2` and whose client offers it.

Not a translation of protocol 1: its own methods (`agent`), its own way from events to updates
(`narrator`), its own words for calls, edits and requests. The session behind them is the same
(`laneway.doors.acp.sessions.room`). As the schema of SDK 2.4.0 has it; drafts change.
"""
