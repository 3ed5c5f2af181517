"""How a question reaches a person, and what the answer means."""
