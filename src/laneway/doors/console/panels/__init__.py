"""The console: parts of the page for live sessions, jobs, team mail and health of this machine.

Each part serves one panel and reaches what it shows through a port (`ports`), which is implemented where
everything is composed. Nothing that another process holds is taken over. Foreign texts are made plain
here, and the page shows them as text only.
"""
