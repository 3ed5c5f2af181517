"""A temporary `CODEX_HOME` that points the real Codex at a scripted model, with a folder to work in.

Outside the system's temp folder, because Codex warns about one inside. Each is locked for as long as
its process lives; folders of a killed process are removed by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway.base.disk import full_text, is_full
from laneway.base.errors import StoreError
from laneway.base.foreign_files import open_regular
from laneway.base.ids import new_id
from laneway.base.paths import cache_home

CONFIG = """\
model = "{model}"
model_provider = "rehearsal"
check_for_update_on_startup = false

[model_providers.rehearsal]
name = "rehearsal"
base_url = "{base_url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
requires_openai_auth = false

[features]
default_mode_request_user_input = true
shell_snapshot = false  # would run your login shell's profile at the start of every thread
plugins = false  # would be fetched from the network, anew for each throw-away home

[tools.update_plan]
enabled = true
"""
MODEL = "gpt-5.5"
"""A name that Codex knows, so that it offers its patch tool."""


@contextmanager
def throwaway_home(base_url: str, model: str = MODEL, extra_config: str = "") -> Iterator[Path]:
    """Make a locked `CODEX_HOME`, and remove it at the end. `work_beside` is the folder to work in."""
    with held_folder() as folder:
        home = folder / "codex"
        with _naming_a_full_disk(folder.parent):
            home.mkdir(mode=0o700)
            work_beside(home).mkdir(mode=0o700)
            (home / "config.toml").write_text(CONFIG.format(base_url=base_url, model=model) + extra_config)
        yield home


@contextmanager
def held_folder() -> Iterator[Path]:
    """Make an empty folder that no `sweep` removes while we live, and remove it at the end."""
    base = cache_home() / "rehearsals"
    with _naming_a_full_disk(base):
        cache_home().parent.mkdir(parents=True, exist_ok=True)
        for folder in (cache_home(), base):  # `parents=True` would set the mode of the last one only
            folder.mkdir(exist_ok=True, mode=0o700)
        sweep(base)
        folder = base / new_id("home")
        lock = _make_held(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def _naming_a_full_disk(folder: Path) -> Iterator[None]:
    """Turn the system's error into one that names the folder."""
    try:
        yield
    except OSError as problem:
        if not is_full(problem):
            raise
        raise StoreError(full_text(folder), str(folder)) from problem


def _make_held(folder: Path) -> int:
    """Make a folder that is locked before a `sweep` can see it."""
    new_folder = folder.with_name(f"new-{folder.name}")
    new_folder.mkdir(mode=0o700)
    lock = os.open(new_folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    new_folder.rename(folder)
    return lock


def work_beside(home: Path) -> Path:
    """The empty folder that was made along with a throw-away home."""
    return home.parent / "work"


def sweep(base: Path) -> list[Path]:
    """Remove the homes whose process is gone; return them."""
    removed = []
    for home in base.glob("home-*"):
        try:
            lock = open_regular(home / ".lock", os.O_RDWR, follow_links=False)
        except FileNotFoundError:
            # A folder is locked before it can be seen, so its owner is removing it, or has failed to.
            shutil.rmtree(home, ignore_errors=True)
            removed.append(home)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # in use
        else:
            shutil.rmtree(home, ignore_errors=True)
            removed.append(home)
        finally:
            os.close(lock)
    return removed
