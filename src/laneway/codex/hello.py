"""How we greet app-server, as bytes: they can be in its pipe before it, or most of us, has started."""

from __future__ import annotations

from laneway import __version__

PARAMS = (
    '{"clientInfo":{"name":"laneway","title":"Laneway","version":"' + __version__ + '"},'
    '"capabilities":{"experimentalApi":true}}'
).encode()
REQUEST_ID = b'"hello"'
FIRST = (
    b'{"id":' + REQUEST_ID + b',"method":"initialize","params":' + PARAMS + b'}\n{"method":"initialized"}\n'
)
"""The whole handshake: Codex takes the second line once it has answered the first."""
