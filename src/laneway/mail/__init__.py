"""Team mail: rosters and inboxes in files that Claude Code and ATM also read and write.

`inbox.Inbox` is one member's mail, `roster.Roster` one team's members, `post.Post` sends messages;
these block: from asyncio call them through `asyncio.to_thread`. `postman.Postman` turns mail into turns.
"""
