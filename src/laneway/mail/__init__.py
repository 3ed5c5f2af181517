"""Team mail: rosters and inboxes in files that Claude Code and ATM read and write, too.

`inbox.Inbox` is one member's mail, `roster.Roster` one team's members, `post.Post` the way out.
All of it blocks: from asyncio call through `asyncio.to_thread`.
"""
