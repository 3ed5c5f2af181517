"""Trust: what an untrusted repository may not say, and tricks that must not gain it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.base import trust
from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.base.schema import KEYS
from laneway.base.settings import Role
from tests.base.folders import Folders, make_repository

WIDE = """\
[laneway]
model = "fine"
codex_bin = "/evil/codex"
sandbox = "danger-full-access"
approval_policy = "never"
base_prompt_file = "evil.md"
extra_instructions_file = "evil.md"
[laneway.roles.narrow]
model = "m"
sandbox = "read-only"
approval_policy = "untrusted"
[laneway.roles.wide]
model = "w"
sandbox = "workspace-write"
approval_policy = "on-request"
"""
WITHHELD = [
    "codex_bin",
    "sandbox",
    "approval_policy",
    "base_prompt_file",
    "extra_instructions_file",
    "roles.wide.sandbox",
    "roles.wide.approval_policy",
]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.repo_file.write_text(WIDE)
    return made


def file_of(folders: Folders) -> Path:
    return trust.trust_file({}, folders.home)


def give(folders: Folders, root: Path, *, trusted: bool = True) -> bool:
    return trust.change(file_of(folders), root, trusted=trusted)


def test_an_untrusted_repository_picks_no_program_and_widens_nothing(folders: Folders) -> None:
    """What it may say still counts; what it may not is kept with the line and the reason."""
    settings = folders.load()
    assert (settings.model, settings.codex_bin, settings.sandbox) == ("fine", None, None)
    assert (settings.approval_policy, settings.base_prompt_file, settings.extra_instructions_file) == (
        None,
        None,
        None,
    )
    assert settings.roles == {
        "narrow": Role(model="m", sandbox="read-only", approval_policy="untrusted"),
        "wide": Role(model="w"),
    }
    assert [".".join(each.keys) for each in settings.ignored] == WITHHELD
    assert str(settings.ignored[1]) == (
        f"{folders.repo_file}, line 4: sandbox = danger-full-access is ignored:"
        f" {folders.repo} is not trusted; `laneway config trust` in it allows this."
    )


def test_a_trusted_repository_sets_everything_until_it_is_trusted_no_more(folders: Folders) -> None:
    """From any folder inside it."""
    assert give(folders, folders.repo)
    settings = folders.load(folders.deep)
    assert (settings.ignored, settings.codex_bin, settings.sandbox) == (
        (),
        "/evil/codex",
        "danger-full-access",
    )
    assert settings.roles["wide"] == Role("w", "workspace-write", "on-request")
    assert give(folders, folders.repo, trusted=False)
    assert len(folders.load().ignored) == len(WITHHELD)


def test_the_users_own_files_flags_and_variables_need_no_trust(folders: Folders) -> None:
    """Nor can an untrusted repository take them back."""
    folders.global_file.write_text('[laneway]\nsandbox = "read-only"\nhttp_token = "t"\n')
    settings = folders.load(LANEWAY_CODEX_BIN="/my/codex")
    assert (settings.sandbox, settings.codex_bin, settings.http_token) == ("read-only", "/my/codex", "t")


def test_whatever_picks_a_file_lets_somebody_in_or_lifts_a_limit_is_guarded() -> None:
    """A new setting must be thought about: this list and the schema change together."""
    assert {name for name, key in KEYS.items() if key.is_guarded} == {
        *("codex_bin", "sandbox", "approval_policy", "base_prompt_file", "extra_instructions_file"),
        *("max_turns", "max_tokens", "http_token", "mail_allow", "mail_deny", "mail_turns_per_hour"),
        *("session_age_days", "registry_max_sessions", "audit_max_bytes", "audit_files", "audit_age_days"),
        "log_file",
    }


def test_a_link_out_of_a_trusted_repository_lends_no_trust(folders: Folders, tmp_path: Path) -> None:
    """The folder that it leads to is what counts."""
    give(folders, folders.repo)
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / ".atm.toml").write_text('[laneway]\nsandbox = "danger-full-access"\n')
    (folders.repo / "inside").symlink_to(evil)
    settings = folders.load(folders.repo / "inside")
    assert (settings.sandbox, len(settings.ignored)) == (None, 1)
    dotted = folders.repo / "deep" / ".." / ".." / "evil"
    assert folders.load(dotted).sandbox is None


def test_a_link_to_a_trusted_repository_is_that_repository(folders: Folders, tmp_path: Path) -> None:
    """And trusting the link trusts what it leads to, by its real path."""
    (tmp_path / "alias").symlink_to(folders.repo)
    give(folders, tmp_path / "alias")
    assert json.loads(file_of(folders).read_text()) == {"version": 1, "trusted": [str(folders.repo)]}
    assert folders.load(tmp_path / "alias" / "deep").sandbox == "danger-full-access"
    (tmp_path / "alias").unlink()
    make_repository(tmp_path / "alias")
    (tmp_path / "alias" / ".atm.toml").write_text(WIDE)
    assert folders.load(tmp_path / "alias").sandbox is None


def test_a_file_that_is_a_link_into_a_trusted_repository_gains_nothing(
    folders: Folders, tmp_path: Path
) -> None:
    """Trust belongs to the place that was asked about."""
    give(folders, folders.repo)
    make_repository(tmp_path / "other")
    (tmp_path / "other" / ".atm.toml").symlink_to(folders.repo_file)
    assert folders.load(tmp_path / "other").sandbox is None


@pytest.mark.parametrize("inside", ["sub", "deep/sub"])
def test_a_repository_inside_a_trusted_one_is_another(folders: Folders, inside: str) -> None:
    """A submodule or a clone; also one whose `.git` is broken."""
    give(folders, folders.repo)
    sub = folders.repo / inside
    sub.mkdir()
    (sub / ".git").write_text("gitdir: nowhere\n")
    (sub / ".atm.toml").write_text(WIDE)
    assert folders.load(sub).sandbox is None


def test_names_that_only_look_alike_are_others(folders: Folders, tmp_path: Path) -> None:
    """No prefix, no folder above, no trailing characters."""
    give(folders, folders.repo)
    for name in ("repo2", "rep", "repo ", "Repo-x"):
        make_repository(tmp_path / name)
        (tmp_path / name / ".atm.toml").write_text(WIDE)
        assert folders.load(tmp_path / name).sandbox is None


def test_without_git_trust_is_for_the_folder_of_the_file(folders: Folders, tmp_path: Path) -> None:
    """And for no other below it."""
    plain = tmp_path / "plain"
    (plain / "below").mkdir(parents=True)
    (plain / ".atm.toml").write_text(WIDE)
    assert folders.load(plain / "below").repo.root == plain
    give(folders, plain)
    assert folders.load(plain / "below").sandbox == "danger-full-access"
    (plain / "below" / ".atm.toml").write_text(WIDE)
    assert folders.load(plain / "below").sandbox is None


def test_the_file_and_its_folder_are_the_users_alone(folders: Folders) -> None:
    """And nothing is left beside it but its lock."""
    give(folders, folders.repo)
    path = file_of(folders)
    assert path == folders.home / ".local" / "state" / "laneway" / "trust.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["trust.json", "trust.lock"]
    assert not give(folders, folders.repo), "nothing changes the second time"


def test_the_state_folder_is_where_xdg_says_and_never_relative() -> None:
    """A relative one would lie in the repository that wants to be trusted."""
    home = Path("/home/ada")
    assert trust.trust_file({"XDG_STATE_HOME": "/s"}, home) == Path("/s/laneway/trust.json")
    for relative in ("", "state", "./state"):
        assert trust.trust_file({"XDG_STATE_HOME": relative}, home).is_relative_to(home)


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("not json", 0o600, FileDamaged),
        ("[" * 100_000, 0o600, FileDamaged),
        ('{"version": 1, "trusted": "all"}', 0o600, FileDamaged),
        ('{"version": 1, "trusted": [1]}', 0o600, FileDamaged),
        ('{"trusted": ["REPO"]}', 0o600, FileDamaged),
        ('{"version": 2, "trusted": ["REPO"]}', 0o600, FileNewer),
        ('{"version": 1, "trusted": ["REPO"]}', 0o622, StoreError),
    ],
)
def test_a_trust_file_in_doubt_trusts_nobody_and_is_never_overwritten(
    folders: Folders, text: str, mode: int, problem: type[StoreError]
) -> None:
    """Damaged, newer, or open to others; the reason is told where a value was ignored for it."""
    path = file_of(folders)
    path.parent.mkdir(parents=True)
    path.write_text(text.replace("REPO", str(folders.repo)))
    path.chmod(mode)
    before = path.read_bytes()
    settings = folders.load()
    assert settings.sandbox is None
    assert str(path) in settings.ignored[0].why
    with pytest.raises(problem):
        give(folders, folders.repo)
    assert path.read_bytes() == before


def test_a_state_folder_that_cannot_be_written_is_one_sentence(folders: Folders) -> None:
    """A file in its place serves for all the ways in which that can fail."""
    (folders.home / ".local").write_text("")
    with pytest.raises(StoreError, match=r"cannot be written .*: make its folder yours"):
        give(folders, folders.repo)


def test_a_path_that_is_no_utf8_can_be_trusted_too(folders: Folders, tmp_path: Path) -> None:
    """Paths are bytes."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    make_repository(odd)
    (odd / ".atm.toml").write_text(WIDE)
    give(folders, odd)
    assert folders.load(odd).sandbox == "danger-full-access"
    assert folders.load().sandbox is None


def test_many_at_once_lose_nothing(folders: Folders, tmp_path: Path) -> None:
    """Processes of their own, each adding one repository."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom laneway.base import trust\n"
        "for root in sys.argv[2:]: trust.change(Path(sys.argv[1]), Path(root), trusted=True)\n"
    )
    path = str(file_of(folders))
    batches = [[str(tmp_path / f"r{n}-{m}") for m in range(10)] for n in range(4)]
    running = [subprocess.Popen([sys.executable, "-c", script, path, *batch]) for batch in batches]
    assert [process.wait(timeout=60) for process in running] == [0] * len(batches)
    assert trust.read(Path(path)).roots == {root for batch in batches for root in batch}
