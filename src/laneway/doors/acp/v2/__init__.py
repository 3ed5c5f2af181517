"""The draft of ACP 2, served by `laneway acp --v2` to clients that offer it.

Has its own methods (`agent`), updates (`updates_v2`), tool calls, patches and permission requests; the
sessions behind them are the same as in protocol 1 (`laneway.doors.acp.sessions.editor_session`).
Follows the schema of SDK 2.4.0; the draft may change.
"""
