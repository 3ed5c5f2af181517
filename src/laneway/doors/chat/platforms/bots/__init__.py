"""What bots of message services have in common: who may speak, what is posted, what is sent again, taps."""
