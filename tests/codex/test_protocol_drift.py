"""The protocol tables match the installed Codex, and contain all methods that we use."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from laneway.codex import engine, link, protocol, questions, releases, thread, translate
from laneway.codex.protocol.methods import (
    CLIENT_REQUESTS,
    CODEX_VERSION,
    SERVER_NOTIFICATIONS,
    SERVER_REQUESTS,
)

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "generate_protocol.py"
SCRIPT_S = 60.0

UNSERVED = frozenset(
    {
        # Only for clients that brought the tokens of a ChatGPT login; ours is Codex's own login.
        "account/chatgptAuthTokens/refresh",
        # Only for clients that said in `initialize` that they can attest where they run; we do not.
        "attestation/generate",
        # Only for clients whose clock a thread was told to use; Codex's own is right.
        "currentTime/read",
    }
)
"""What app-server may ask and we answer with -32601."""


def strings_in(module: ModuleType) -> set[str]:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str
    }


def called_in(module: ModuleType) -> set[str]:
    """The methods of every `….call("method", …)`."""
    found = set()
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="call"), args=[ast.Constant(value=str(method)), *_]):
                found.add(method)
    return found


def test_generating_the_protocol_anew_changes_nothing(tmp_path: Path) -> None:
    """The files in the tree are what the installed Codex and our own calls give; else: `make protocol`."""
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True, timeout=SCRIPT_S)
    kept = Path(str(protocol.__file__)).parent
    fresh = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    assert fresh == {path.name: path.read_text() for path in kept.glob("*.py")}
    assert f'CODEX_VERSION = "{CODEX_VERSION}"' in fresh["methods.py"]


@pytest.mark.parametrize("module", [link, thread, engine, releases])
def test_every_method_that_we_call_is_one_of_codex(module: ModuleType) -> None:
    """A call that Codex does not know would only fail when somebody needs it."""
    called = called_in(module)
    assert called
    assert called <= CLIENT_REQUESTS


def test_every_call_that_may_be_repeated_is_one_of_codex() -> None:
    """A misspelt name in the list of idempotent calls would silently never be repeated."""
    assert link.IDEMPOTENT <= CLIENT_REQUESTS


def test_every_notification_that_we_translate_is_one_of_codex() -> None:
    """A handler for a name that Codex does not use would silently never run."""
    assert {*translate._HANDLERS, *translate.DELTA_EVENTS} <= SERVER_NOTIFICATIONS


def test_every_request_of_codex_is_served_or_refused_on_purpose() -> None:
    """A new kind of request shows here, before it meets a user as an error."""
    served = {*questions._MAKERS, "item/tool/call"}
    assert served | UNSERVED == SERVER_REQUESTS
    assert not served & UNSERVED


@pytest.mark.parametrize("module", [link, thread, engine, questions, translate])
def test_every_method_named_in_our_code_is_one_of_codex(module: ModuleType) -> None:
    """Whatever looks like a method, `serverRequest/resolved` for one, is spelt as Codex spells it."""
    named = {text for text in strings_in(module) if re.fullmatch(r"[a-z]\w+(/[a-z]\w+)+", text)}
    assert named <= CLIENT_REQUESTS | SERVER_REQUESTS | SERVER_NOTIFICATIONS
