"""`laneway setup telegram`, `discord` and `service`: bots of the user's own, and a service that runs them."""
