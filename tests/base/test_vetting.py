"""Trust in what was seen: what changes it, what is used, and files that sessions could write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from laneway.base import trust, vetting
from laneway.base.errors import ContentUnreadable
from laneway.base.settings import Role
from tests.base.folders import Folders

WIDE = """\
[laneway]
reasoning_effort = "low"
codex_bin = "/opt/codex"
sandbox = "danger-full-access"
approval_policy = "never"
[laneway.roles.wide]
model = "w"
sandbox = "workspace-write"
"""
WITHHELD = ["codex_bin", "sandbox", "approval_policy", "roles.wide.model", "roles.wide.sandbox"]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.repo_file.write_text(WIDE)
    return made


def keys(folders: Folders) -> list[str]:
    """What is ignored."""
    return [".".join(each.keys) for each in folders.load().ignored]


def test_an_untrusted_repository_picks_no_program_and_widens_nothing(folders: Folders) -> None:
    """What it may say still counts; what it may not is kept with the line and the reason."""
    settings = folders.load()
    assert (settings.reasoning_effort, settings.codex_bin, settings.sandbox) == ("low", None, None)
    assert settings.roles == {}
    assert keys(folders) == WITHHELD
    assert str(settings.ignored[1]) == (
        f"{folders.repo_file}, line 4: sandbox = danger-full-access is ignored:"
        f" {folders.repo} is not trusted; `laneway config trust` in it allows this."
    )


def test_a_trusted_repository_sets_everything_until_it_is_trusted_no_more(folders: Folders) -> None:
    """From any folder inside it."""
    assert folders.trust()
    settings = folders.load(folders.deep)
    assert (settings.ignored, settings.codex_bin, settings.sandbox) == (
        (),
        "/opt/codex",
        "danger-full-access",
    )
    assert settings.roles["wide"] == Role(model="w", sandbox="workspace-write")
    assert trust.take_back(folders.trust_file, folders.repo)
    assert keys(folders) == WITHHELD


def test_the_users_own_files_flags_and_variables_need_no_trust(folders: Folders) -> None:
    """Nor can an untrusted repository take them back."""
    folders.global_file.write_text('[laneway]\nsandbox = "read-only"\nhttp_token = "t"\n')
    settings = folders.load(LANEWAY_CODEX_BIN="/my/codex")
    assert (settings.sandbox, settings.codex_bin, settings.http_token) == ("read-only", "/my/codex", "t")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"/opt/codex"', '"/opt/codex2"'),
        ('codex_bin = "/opt/codex"\n', ""),
        ('approval_policy = "never"', 'approval_policy = "never"\nhttp_token = "x"'),
        ('model = "w"', 'model = "v"'),
        ("roles.wide", "roles.other"),
    ],
)
def test_one_change_to_what_was_trusted_ends_trust_in_all_of_it(folders: Folders, old: str, new: str) -> None:
    """A value, a key less, a key more, a field of a role, its name; and what was trusted still is."""
    folders.trust()
    folders.repo_file.write_text(WIDE.replace(old, new))
    settings = folders.load()
    assert (settings.codex_bin, settings.sandbox, settings.roles) == (None, None, {})
    assert [file.trust_state for file in settings.repo_files] == ["changed"]
    assert settings.ignored[0].why == (
        "this file has changed since you trusted it; `laneway config trust` shows how"
    )
    folders.repo_file.write_text(WIDE)
    assert keys(folders) == []


def test_what_needs_no_trust_and_how_it_is_written_may_change(folders: Folders) -> None:
    """Comments, order, tables by their other name, keys that are free, and what others keep there."""
    folders.trust()
    folders.repo_file.write_text(
        '[display]\nformat = "json"\n[plugins.codex-mcp]\nreasoning_effort = "high"\n# ours\n'
        "sandbox = 'danger-full-access'\ncodex_bin = '/opt/codex'\napproval_policy = 'never'\n"
        "roles = { wide = { sandbox = 'workspace-write', model = 'w' } }\n"
    )
    assert (keys(folders), folders.load().reasoning_effort) == ([], "high")


def test_a_value_of_another_type_is_another_value(folders: Folders) -> None:
    """A list of one name is not that name, and a key cannot pose as another by how it is spelt."""
    folders.say('[laneway]\nmodel = "a"\n[laneway.per_thread_auto_mail]\n"x.y" = false\n')
    seen = vetting.request_of(folders.load().repo_files[0]).settings
    assert set(seen) == {"model", "per_thread_auto_mail.'x.y'"}
    folders.repo_file.write_text('[laneway]\nfast_model = "a"\n')
    assert keys(folders) == ["fast_model"]


def test_secrets_are_compared_and_never_kept(folders: Folders) -> None:
    """Not in the clear: the file says that there is one."""
    folders.say('[laneway]\nhttp_token = "hunter2"\n')
    assert "hunter2" not in folders.trust_file.read_text()
    folders.repo_file.write_text('[laneway]\nhttp_token = "hunter3"\n')
    assert keys(folders) == ["http_token"]


def test_each_of_a_repositorys_two_files_is_trusted_for_itself(folders: Folders) -> None:
    """A new one gains nothing by the other, and takes nothing from it."""
    folders.trust()
    folders.own_repo_file.write_text('[laneway]\nsandbox = "workspace-write"\nteam = "crew"\n')
    settings = folders.load()
    assert (settings.sandbox, settings.codex_bin, settings.team) == (
        "danger-full-access",
        "/opt/codex",
        "default",
    )
    assert [(file.path.name, file.trust_state) for file in settings.repo_files] == [
        (".atm.toml", "trusted"),
        (".laneway.toml", "not trusted"),
    ]
    folders.trust()
    assert (folders.load().sandbox, folders.load().team) == ("workspace-write", "crew")
    folders.repo_file.write_text(WIDE.replace("/opt/codex", "/opt/other"))
    settings = folders.load()
    assert (settings.sandbox, settings.team, settings.codex_bin) == ("workspace-write", "crew", None)


def test_without_git_each_file_belongs_to_its_folder(folders: Folders, tmp_path: Path) -> None:
    """Trust in the outer one is none in the inner one."""
    outer, inner = tmp_path / "plain", tmp_path / "plain" / "inner"
    inner.mkdir(parents=True)
    (outer / ".atm.toml").write_text('[laneway]\nteam = "crew"\n')
    (inner / ".laneway.toml").write_text('[laneway]\nidentity = "ann"\n')
    settings = folders.load(inner)
    assert [file.root for file in settings.repo_files] == [outer, inner]
    assert settings.repo.root == inner


# ── files that a repository names ──────────────────────────────────────────


def test_the_content_of_a_prompt_file_is_part_of_what_is_trusted(folders: Folders) -> None:
    """And what was checked is what is used, whatever is in the file a moment later."""
    prompt = folders.repo / "base.md"
    prompt.write_text("Be good.")
    folders.say('[laneway]\nbase_prompt_file = "base.md"\n')
    settings = folders.load()
    assert settings.contents == {prompt: b"Be good."}
    prompt.write_text("Be evil.")
    assert (keys(folders), folders.load().contents) == (["base_prompt_file"], {})
    prompt.unlink()
    assert folders.load().ignored[0].why == (
        f"{prompt} cannot be read (No such file or directory), so it is not what you trusted"
    )
    prompt.write_text("Be good.")
    assert keys(folders) == []


def test_a_prompt_file_elsewhere_is_checked_as_well(folders: Folders, tmp_path: Path) -> None:
    """A link in the repository that comes to lead to another file, too."""
    good, evil = tmp_path / "good.md", tmp_path / "evil.md"
    good.write_text("Be good.")
    evil.write_text("Be evil.")
    (folders.repo / "link.md").symlink_to(good)
    for named in (str(good), "link.md"):
        folders.say(f'[laneway]\nextra_instructions_file = "{named}"\n')
        assert keys(folders) == []
    (folders.repo / "link.md").unlink()
    (folders.repo / "link.md").symlink_to(evil)
    assert keys(folders) == ["extra_instructions_file"]


def test_nothing_that_an_untrusted_repository_names_is_opened(folders: Folders) -> None:
    """A pipe would hold us, and a device could do anything; once asked for, it is refused in words."""
    os.mkfifo(folders.repo / "pipe")
    folders.repo_file.write_text('[laneway]\nbase_prompt_file = "pipe"\n')
    settings = folders.load()
    with pytest.raises(ContentUnreadable, match="is no file"):
        vetting.request_of(settings.repo_files[0])
    (folders.repo / "big").write_bytes(b"x" * (vetting.MAX_CONTENT_BYTES + 1))
    folders.repo_file.write_text('[laneway]\nbase_prompt_file = "big"\n')
    with pytest.raises(ContentUnreadable, match="is larger than 256 KiB"):
        vetting.request_of(folders.load().repo_files[0])


@pytest.mark.parametrize("key", ["codex_bin", "log_file"])
def test_what_is_run_or_written_must_lie_where_no_session_can_write(
    folders: Folders, tmp_path: Path, key: str
) -> None:
    """Nor may any link on the way to it; trusted or not."""
    safe = Path("/usr/bin")
    (folders.repo / "here").write_text("")
    (folders.repo / "out").symlink_to(safe)
    (tmp_path / "into").symlink_to(folders.repo)
    named = [
        *("./here", "here/", "deep/../here", "./missing", "out/env"),
        *(
            str(tmp_path / "circle"),
            str(tmp_path / "into" / "here"),
            f"/usr/../{folders.repo}/here",
            "/tmp/x",
            "/tmp/../tmp/x",
        ),
    ]
    for path in named:
        folders.say(f'[laneway]\n{key} = "{path}"\nsandbox = "danger-full-access"\n')
        settings = folders.load()
        assert (settings.value(key), settings.sandbox) == (None, "danger-full-access"), path
        assert "sessions can write" in settings.ignored[0].why
    folders.say(f'[laneway]\n{key} = "/usr/bin/env"\n')
    assert str(folders.load().value(key)) == "/usr/bin/env"


def test_a_link_elsewhere_that_leads_through_the_repository_is_refused(folders: Folders) -> None:
    """However many there are, and if they never end; outside of the temp folder, which is refused anyway."""
    (folders.repo / "hop").symlink_to("/usr/bin/env")
    with tempfile.TemporaryDirectory(dir=os.environ["HOME"]) as made:
        top = Path(os.path.realpath(made))
        (top / "last").symlink_to("/usr/bin/env")
        (top / "safe").symlink_to("last")
        (top / "second").symlink_to(folders.repo / "hop")
        (top / "first").symlink_to("second")
        (top / "circle").symlink_to("circle")
        for name, is_taken in (("safe", True), ("first", False), ("circle", False)):
            folders.say(f'[laneway]\ncodex_bin = "{top / name}"\n')
            assert (folders.load().codex_bin is not None) is is_taken, name


def test_a_folder_is_known_by_any_of_its_names(folders: Folders) -> None:
    """Through `/proc`, as through a second mount or in other case, the same folder has another path."""
    if not Path("/proc/self/root").exists():
        pytest.skip("needs /proc")
    (folders.repo / "codex").write_text("")
    folders.say(f'[laneway]\ncodex_bin = "/proc/self/root{folders.repo}/codex"\n')
    assert folders.load().codex_bin is None


def test_the_temp_folder_of_the_environment_counts(folders: Folders) -> None:
    """Codex lets sessions write to TMPDIR."""
    folders.say('[laneway]\ncodex_bin = "/var/elsewhere/codex"\n')
    assert folders.load().codex_bin == "/var/elsewhere/codex"
    assert folders.load(TMPDIR="/var/elsewhere").codex_bin is None
    assert folders.load(TMPDIR="relative").codex_bin == "/var/elsewhere/codex"


def test_a_bare_name_that_path_finds_where_sessions_write_is_refused(folders: Folders) -> None:
    """As in a repository whose virtual environment is active."""
    program = folders.repo / "bin" / "codex-beta"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    folders.say('[laneway]\ncodex_bin = "codex-beta"\n')
    assert folders.load(PATH="/usr/bin").codex_bin == "codex-beta"
    assert folders.load(PATH=f"/usr/bin:{program.parent}").codex_bin is None


def test_a_repository_that_holds_the_trust_file_cannot_be_trusted(folders: Folders) -> None:
    """Its sessions could write what they like into it."""
    inside = {"XDG_STATE_HOME": str(folders.repo / "state")}
    file = trust.trust_file(inside, folders.home)
    trust.give(
        file, folders.repo, {folders.repo_file: vetting.request_of(folders.load().repo_files[0]).settings}
    )
    settings = folders.load(**inside)
    assert settings.sandbox is None
    assert "holds the file in which trust is kept" in settings.ignored[0].why


def test_the_file_systems_root_can_never_be_trusted(tmp_path: Path) -> None:
    """Every path leads through it, that of the trust file, too."""
    why = vetting.why_never(Path("/"), tmp_path / "trust.json")
    assert why == "/ holds the file in which trust is kept, so its sessions could forge it"
