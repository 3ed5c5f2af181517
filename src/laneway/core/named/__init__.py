"""Named sessions that can be resumed after a restart: identities, records, budgets, summaries."""
