"""Sessions and turns: events, rules, hub and named sessions. Knows no JSON-RPC, no files and no vendor."""
