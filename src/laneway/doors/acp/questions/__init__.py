"""Questions of a session on their way to a person: permission requests, forms, text in the conversation."""
