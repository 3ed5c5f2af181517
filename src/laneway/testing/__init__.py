"""Tools for tests, ours and yours: misbehaving children, hand-driven engines and clocks. Nothing inside imports it."""
