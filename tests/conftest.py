"""What all tests share: nothing that hides what a test does."""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import signal
import subprocess
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
    from laneway.doors.local import socket_files

    with tempfile.TemporaryDirectory(prefix="lw") as folder:
        monkeypatch.setattr(socket_files, "LAST_RESORT", Path(folder, "last"))
        yield Path(folder)


@pytest.fixture
def own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Git sees no configuration of this machine, and no repository above the test's folder."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


ROOT = Path(__file__).resolve().parent.parent
STRAYS = pytest.StashKey[set[str]]()
"""Files beside the source that git does not know, before the first test."""
FOR_TESTS = ("LANEWAY_PEERS", "LANEWAY_CHAOS", "LANEWAY_CODEX_BIN", "LANEWAY_CLAUDE_BIN", "LANEWAY_RECORD")


def pytest_configure(config: pytest.Config) -> None:
    """No test sees the user's own home: a login shell would run its profile, and we kill some half-way."""
    # An example may take as long as it takes: other tests run beside it.
    hypothesis.settings.register_profile(
        "laneway", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("laneway")
    # A shell lets what it starts in the background ignore Ctrl-C, and so would all that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whoever crashes says where.
    os.environ["PYTHONFAULTHANDLER"] = "1"
    home = own_home()
    home.mkdir(parents=True, exist_ok=True)
    os.environ["HOME"] = str(home)
    for name in list(os.environ):
        # A developer's own settings do not reach the tests.
        if name.startswith(("XDG_", "LANEWAY_", "ATM_")) and name not in FOR_TESTS:
            del os.environ[name]
    if not hasattr(config, "workerinput"):
        config.stash[STRAYS] = strays()


def own_home() -> Path:
    """Beside the code; for a clone in the system's temp folder, in the cache of whoever runs this.

    Codex warns about a home in the temp folder, and lets every sandbox write there.
    """
    temporary = {Path("/tmp").resolve(), Path(tempfile.gettempdir()).resolve()}
    if not temporary.intersection(ROOT.parents):
        return ROOT / ".stamps" / "home"
    name = hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:16]
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

    return {feature.name for feature in binary.missing_features(binary.probe(locate.find()))}


# ── the end of a run ───────────────────────────────────────────────────────


def strays() -> set[str]:
    """Files beside the source that git neither has nor ignores. Empty where this is no clone."""
    words = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=all", "-z"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    return {line.removeprefix("?? ") for line in ran.stdout.split("\0") if line.startswith("?? ")}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test that writes beside the source fails the run: what it left there would be committed one day."""
    before = session.config.stash.get(STRAYS, None)
    if before is not None:
        session.config.stash[STRAYS] = strays() - before
        if session.config.stash[STRAYS] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What is needed to see a failure again, where it is looked for: at the end."""
    left = config.stash.get(STRAYS, set())
    if left:
        terminalreporter.section("files left beside the source")
        terminalreporter.write_line("\n".join(sorted(left)))
    seed = config.getoption("randomly_seed", None)
    if seed is not None and any(terminalreporter.stats.get(kind) for kind in ("failed", "error")):
        terminalreporter.write_line(f"The order of this run: pytest --randomly-seed={seed}")
