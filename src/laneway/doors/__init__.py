"""Front ends: each subpackage is a server for one protocol (MCP, ACP, the local socket).

A front end is given the sessions that it serves; it starts no engine and opens no store itself.
"""
