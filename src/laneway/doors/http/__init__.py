"""HTTP for servers of Laneway's own: connections, requests, streams of events, and the server around them."""
