"""The `initialize` handshake with app-server, as bytes that need no JSON encoder.

They can be written into its pipe before it, or most of Laneway, has started.
"""

from __future__ import annotations

from laneway import __version__

PARAMS = (
    '{"clientInfo":{"name":"laneway","title":"Laneway","version":"' + __version__ + '"},'
    '"capabilities":{"experimentalApi":true}}'
).encode()
REQUEST_ID = b'"hello"'
HANDSHAKE = (
    b'{"id":' + REQUEST_ID + b',"method":"initialize","params":' + PARAMS + b'}\n{"method":"initialized"}\n'
)
"""The whole handshake: Codex reads the second line after it has answered the first."""
