"""What all tests share: nothing that hides what a test does."""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Whoever configures our log in a test does not do so for the next one."""
    log = logging.getLogger("laneway")
    before = (log.handlers[:], log.level, log.propagate)
    yield
    for handler in log.handlers:
        if handler not in before[0]:
            handler.close()
    log.handlers[:], log.propagate = before[0], before[2]
    log.setLevel(before[1])  # not the attribute: loggers remember what is enabled


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short folder for sockets: pytest's own are too deep. The last resort of others is not looked into."""
    from laneway.doors.local import places

    with tempfile.TemporaryDirectory(prefix="lw") as folder:
        monkeypatch.setattr(places, "LAST_RESORT", Path(folder, "last"))
        yield Path(folder)


FOR_TESTS = ("LANEWAY_PEERS", "LANEWAY_CHAOS", "LANEWAY_CODEX_BIN", "LANEWAY_RECORD")


def pytest_configure(config: pytest.Config) -> None:
    """No test sees the user's own home: a login shell would run its profile, and we kill some half-way."""
    # An example may take as long as it takes: other tests run beside it.
    hypothesis.settings.register_profile(
        "laneway", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("laneway")
    home = own_home()
    home.mkdir(parents=True, exist_ok=True)
    os.environ["HOME"] = str(home)
    for name in list(os.environ):
        # A developer's own settings do not reach the tests.
        if name.startswith(("XDG_", "LANEWAY_", "ATM_")) and name not in FOR_TESTS:
            del os.environ[name]


def own_home() -> Path:
    """Beside the code; for a clone in the system's temp folder, in the cache of whoever runs this.

    Codex warns about a home in the temp folder, and lets every sandbox write there.
    """
    root = Path(__file__).resolve().parent.parent
    temporary = {Path("/tmp").resolve(), Path(tempfile.gettempdir()).resolve()}
    if not temporary.intersection(root.parents):
        return root / ".stamps" / "home"
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "laneway-tests", name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Full chaos and foreign programs run only when asked for; what is left out is counted aloud."""
    for item in items:
        if "peers" in item.keywords and "LANEWAY_PEERS" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="needs `make test-peers`"))
    missing = lacking() if any(item.get_closest_marker("needs") for item in items) else set()
    for item in items:
        lost = missing & {name for marker in item.iter_markers("needs") for name in marker.args}
        if lost:
            item.add_marker(pytest.mark.skip(reason=f"this Codex has no {', '.join(sorted(lost))}"))


def lacking() -> set[str]:
    """The features that the Codex under test does not have, by the table of `laneway.codex.binary`."""
    from laneway.codex import binary, locate

    return {feature.name for feature in binary.lacks(binary.probe(locate.find()))}
