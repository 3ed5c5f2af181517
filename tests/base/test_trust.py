"""Whom trust is given to: one place, by its real path; and the file in which that is kept."""

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
from laneway.base.trust import Fingerprint
from tests.adversary.odd_files import Maker, sparse_file, unreadable
from tests.base.folders import Folders, make_repository

WIDE = '[laneway]\nsandbox = "danger-full-access"\n'
SEEN = {"sandbox": Fingerprint("d1", "danger-full-access")}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.repo_file.write_text(WIDE)
    return made


def give(folders: Folders) -> bool:
    return trust.give(folders.trust_file, folders.repo, {folders.repo_file: SEEN})


def test_a_repository_that_nobody_trusts_may_forbid_config_keys_and_allow_none(folders: Folders) -> None:
    """`harmless` only narrows; what the user forbids stays forbidden until the repository is trusted."""
    folders.repo_file.write_text('[laneway]\nconfig_keys = "harmless"\n')
    assert (folders.load().config_keys, folders.load().ignored) == ("harmless", ())
    folders.repo_file.write_text('[laneway]\nconfig_keys = "any"\n')
    folders.global_file.write_text('[laneway]\nconfig_keys = "harmless"\n')
    settings = folders.load()
    assert (settings.config_keys, [each.keys for each in settings.ignored]) == (
        "harmless",
        [("config_keys",)],
    )
    assert folders.trust()
    assert folders.load().config_keys == "any"


def test_a_link_out_of_a_trusted_repository_lends_no_trust(folders: Folders, tmp_path: Path) -> None:
    """The folder that it leads to is what counts."""
    folders.trust()
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
    folders.trust(tmp_path / "alias")
    (entry,) = json.loads(folders.trust_file.read_text())["trusted"]
    assert (entry["root"], entry["file"]) == (str(folders.repo), str(folders.repo_file))
    assert folders.load(tmp_path / "alias" / "deep").sandbox == "danger-full-access"
    (tmp_path / "alias").unlink()
    make_repository(tmp_path / "alias")
    (tmp_path / "alias" / ".atm.toml").write_text(WIDE)
    assert folders.load(tmp_path / "alias").sandbox is None


def test_a_file_that_is_a_link_into_a_trusted_repository_gains_nothing(
    folders: Folders, tmp_path: Path
) -> None:
    """Trust belongs to the place that was asked about."""
    folders.trust()
    make_repository(tmp_path / "other")
    (tmp_path / "other" / ".atm.toml").symlink_to(folders.repo_file)
    assert folders.load(tmp_path / "other").sandbox is None


@pytest.mark.parametrize("inside", ["sub", "deep/sub"])
def test_a_repository_inside_a_trusted_one_is_another(folders: Folders, inside: str) -> None:
    """A submodule or a clone; also one whose `.git` is broken."""
    folders.trust()
    sub = folders.repo / inside
    sub.mkdir()
    (sub / ".git").write_text("gitdir: nowhere\n")
    (sub / ".atm.toml").write_text(WIDE)
    assert folders.load(sub).sandbox is None


def test_names_that_only_look_alike_are_others(folders: Folders, tmp_path: Path) -> None:
    """No prefix, no folder above, no trailing characters."""
    folders.trust()
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
    folders.trust(plain)
    assert folders.load(plain / "below").sandbox == "danger-full-access"
    (plain / "below" / ".atm.toml").write_text(WIDE)
    assert folders.load(plain / "below").sandbox is None


def test_the_file_and_its_folder_are_the_users_alone(folders: Folders) -> None:
    """And nothing is left beside it but its lock."""
    assert folders.trust()
    path = folders.trust_file
    assert path == folders.home / ".local" / "state" / "laneway" / "trust.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["trust.json", "trust.lock"]
    assert not folders.trust(), "nothing changes the second time"


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
        ('{"version": 2, "trusted": ["REPO"], "folders_of_version_1": []}', 0o600, FileDamaged),
        ('{"version": 2, "trusted": [{"root": "REPO"}], "folders_of_version_1": []}', 0o600, FileDamaged),
        (
            '{"version": 2, "trusted": [{"root": "REPO", "file": "REPO/.atm.toml", "settings": []}],'
            ' "folders_of_version_1": []}',
            0o600,
            FileDamaged,
        ),
        ('{"version": 3, "trusted": ["REPO"]}', 0o600, FileNewer),
        ('{"version": 1, "trusted": ["REPO"]}', 0o622, StoreError),
    ],
)
def test_a_trust_file_in_doubt_trusts_nobody_and_is_never_overwritten(
    folders: Folders, text: str, mode: int, problem: type[StoreError]
) -> None:
    """Damaged, newer, or open to others; the reason is told where a value was ignored for it."""
    path = folders.trust_file
    path.parent.mkdir(parents=True)
    path.write_text(text.replace("REPO", str(folders.repo)))
    path.chmod(mode)
    before = path.read_bytes()
    settings = folders.load()
    assert settings.sandbox is None
    assert str(path) in settings.ignored[0].why
    with pytest.raises(problem):
        give(folders)
    assert path.read_bytes() == before


@unreadable
@pytest.mark.parametrize("name", ["trust.json", "trust.lock"])
def test_an_odd_trust_file_or_lock_trusts_nobody_and_holds_nobody_up(
    folders: Folders, make: Maker, name: str
) -> None:
    """A pipe in their place would freeze every start."""
    path = folders.trust_file
    path.parent.mkdir(parents=True)
    make(path.with_name(name))
    assert folders.load().sandbox is None
    if name == "trust.lock" and make is sparse_file:
        return  # nobody reads it: as good a lock as any
    with pytest.raises(StoreError, match=r"trust file .* cannot be (read|written) \(.+\): "):
        give(folders)
    assert folders.load().sandbox is None


def test_folders_that_version_1_trusted_are_remembered_and_not_trusted(
    folders: Folders, tmp_path: Path
) -> None:
    """Until they are trusted as they are now, or no more; trusting one does not forget the others."""
    other = tmp_path / "other"
    make_repository(other)
    (other / ".atm.toml").write_text(WIDE)
    folders.trust_file.parent.mkdir(parents=True)
    folders.trust_file.write_text(json.dumps({"version": 1, "trusted": [str(folders.repo), str(other)]}))
    folders.trust_file.chmod(0o600)
    assert folders.load().sandbox is None
    assert folders.load().ignored[0].why == (
        f"an earlier Laneway trusted the folder {folders.repo}, whatever it says; "
        "`laneway config trust` in it shows what it says now and allows that"
    )
    assert folders.trust()
    assert folders.load().sandbox == "danger-full-access"
    assert "an earlier Laneway" in folders.load(other).ignored[0].why
    assert trust.take_back(folders.trust_file, other)
    assert "is not trusted; " in folders.load(other).ignored[0].why


def test_only_the_digests_decide(folders: Folders) -> None:
    """The text is for people: another one is no change, another digest is one."""
    assert give(folders)
    assert not give(folders)
    file, path = folders.trust_file, folders.repo_file
    assert not trust.give(file, folders.repo, {path: {"sandbox": Fingerprint("d1", "said otherwise")}})
    assert trust.give(file, folders.repo, {path: {"sandbox": Fingerprint("d2", "danger-full-access")}})
    assert trust.give(file, folders.repo, {path: {}})
    entry = trust.read(file).entry(folders.repo, path)
    assert entry is not None
    assert entry.settings == {}


def test_a_trust_file_that_would_be_too_large_to_read_is_not_written(folders: Folders) -> None:
    """Whatever a repository says, it cannot take trust from all others."""
    give(folders)
    many = {f"roles.r{number}.model": Fingerprint("d" * 64, "x" * 400) for number in range(9000)}
    with pytest.raises(StoreError, match=r"is full: `laneway config untrust DIR` makes room"):
        trust.give(folders.trust_file, folders.repo / "deep", {folders.deep / ".atm.toml": many})
    assert trust.read(folders.trust_file).entry(folders.repo, folders.repo_file) is not None


def test_a_state_folder_that_cannot_be_written_is_one_sentence(folders: Folders) -> None:
    """A file in its place serves for all the ways in which that can fail."""
    (folders.home / ".local").write_text("")
    with pytest.raises(StoreError, match=r"cannot be written .*: make its folder yours"):
        give(folders)


def test_a_path_that_is_no_utf8_can_be_trusted_too(folders: Folders, tmp_path: Path) -> None:
    """Paths are bytes."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    make_repository(odd)
    (odd / ".atm.toml").write_text(WIDE)
    folders.trust(odd)
    assert folders.load(odd).sandbox == "danger-full-access"
    assert folders.load().sandbox is None


def test_many_at_once_lose_nothing(folders: Folders, tmp_path: Path) -> None:
    """Processes of their own, each adding one repository."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom laneway.base import trust\n"
        "for root in sys.argv[2:]: trust.give(Path(sys.argv[1]), Path(root), {Path(root, '.atm.toml'): {}})\n"
    )
    path = str(folders.trust_file)
    batches = [[str(tmp_path / f"r{n}-{m}") for m in range(10)] for n in range(4)]
    running = [subprocess.Popen([sys.executable, "-c", script, path, *batch]) for batch in batches]
    assert [process.wait(timeout=60) for process in running] == [0] * len(batches)
    entries = trust.read(Path(path)).entries
    assert {entry.root for entry in entries} == {root for batch in batches for root in batch}
