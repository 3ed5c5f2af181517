"""Good input to begin with: recorded traces, the script language's own help, small files."""

from __future__ import annotations

from pathlib import Path

from laneway.rehearsal.script import HELP

GOLDEN = Path(__file__).parent.parent / "golden"

STREAMS = [
    b'\3\7\11\20{"method":"a"}\n{"id":1,"method":"d","params":[1]}\r\n',
    b'\1\2\3\4Content-Length: 15\r\n\r\n{"method":"ab"}Content-Type: x\r\ncontent-length: 2\r\n\r\n{}\n',
    b'\1\2\3\4[{"id":1,"method":"x"},{"method":"y"},7]\n{"id":"\\ud83d","method":"d","params":"\xc3\xa9"}\n',
    b"\1\2\3\4Content-Length: 3\r\nContent-Length: 900\r\n\r\nWARNING: x\n\n{}Content-Length: 2\r\n\r\n{}",
    b'\1\2\3\4{"id":1,"result":{}}\n{"id":1,"error":{"code":1}}\n{"id":1,"method":17}\n"text"\n[]\n',
]
CONFIG = [
    b'[core]\ndefault_team = "a"\nidentity = "b"\n[laneway]\nsandbox = "read-only"\n',
    b'[plugins.atm-agent-mcp]\nidentity = "codex-1"\nauto_mail = true\n'
    b'[plugins.atm-agent-mcp.roles.review]\nsandbox = "read-only"\n',
    b"[laneway.per_thread_auto_mail]\n\"a.b\" = false\n'c' = true\n[other]\nx = [1, {y = '''z'''}]\n",
]
REGISTRY = [
    b'{"version":1,"sessions":[]}',
    b'{"version":1,"x":[1],"sessions":[{"agent_id":"a","identity":"b","team":"c","thread_id":"t","status":'
    b'"active","last_active_at":"2026-01-01T00:00:00Z","more":{"x":1e9}},{"codex_id":1},5]}',
    b'{"version":2,"sessions":{}}',
]
TRUST = [b'{"version": 1, "trusted": ["/a/b"]}', b'{"version": 2}', b'{"version": 1, "trusted": [1]}']
EDITOR = [
    b'{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}},"_meta":{"terminal_output":true}}}',
    b'{"prompt":[{"type":"text","text":"/plan x"},{"type":"image","data":"AAAA","mimeType":"image/png"},'
    b'{"type":"resource","resource":{"uri":"file:///x","text":"[/ACP_RESOURCE]"}}]}',
    b'{"cwd":"/","mcpServers":[{"name":"a.b","command":"x","args":["y"],"env":[{"name":"K","value":"v"}]},'
    b'{"type":"http","name":"c","url":"http://x","headers":[]}],"additionalDirectories":["/tmp"]}',
    b'{"outcome":{"outcome":"selected","optionId":"accept"}}\n{"integer":1,"number":' + b"9" * 400 + b"}",
    b"\0\1\2\3\4\5\6\7\377\376\200\1\2\3",
    *(b"[" * depth + b"]" * depth for depth in (900, 950)),
]


def seeds(target: str) -> list[bytes]:
    match target:
        case "frames" | "peer":
            return STREAMS
        case "translate" | "link":
            return [trace.read_bytes() for trace in sorted(GOLDEN.glob("*/*.jsonl"))]
        case "rehearsal":
            return [HELP.encode(), b'%tool x {"a": [1]}\n%ask a? b | c\n%edit f a => b\n%fail 500']
        case "settings":
            return CONFIG
        case "registry":
            return REGISTRY
        case "trust":
            return TRUST
        case "editor":
            return EDITOR
    raise KeyError(target)
