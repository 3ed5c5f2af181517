"""Where a value comes from: the order, the two files, the tables and variables that count."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import SettingError
from laneway.base.schema import KEYS, NodeSetting
from laneway.base.settings import Role, Source, load
from tests.base.folders import Folders, make_repository


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@pytest.mark.covers("FR-12.3")
def test_the_flag_goes_before_the_environment_before_the_repo_before_the_global_file(
    folders: Folders,
) -> None:
    """And each value knows where it comes from, to the line."""
    assert (folders.load().model, folders.load().source("model")) == (None, Source("default"))
    folders.global_file.write_text('[laneway]\n\nmodel = "from-global"\n')
    assert folders.load().source("model") == Source("global", str(folders.global_file), 3)
    folders.say('# ours\n[laneway]\nmodel = "from-repo"\n')
    settings = folders.load(folders.deep)
    assert (settings.model, settings.source("model")) == (
        "from-repo",
        Source("repo", str(folders.repo_file), 3),
    )
    environment = {"LANEWAY_MODEL": "from-variable"}
    assert folders.load(**environment).source("model") == Source("environment", "LANEWAY_MODEL")
    by_flag = load({"model": "from-flag"}, environment, folders.repo, folders.home)
    assert (by_flag.value("model"), by_flag.source("model")) == ("from-flag", Source("flag", "--model"))


def test_our_own_files_go_before_those_that_we_share_with_atm(folders: Folders) -> None:
    """Key by key: the repository's two, then the user's two, with the same tables in each."""
    folders.own_file.parent.mkdir(parents=True)
    files = {
        "atm": folders.global_file,
        "own": folders.own_file,
        "repo-atm": folders.repo_file,
        "repo-own": folders.own_repo_file,
    }
    for count, (name, file) in enumerate(files.items(), start=1):
        file.write_text(f'[plugins.codex-mcp]\nmodel = "{name}"\n[laneway.roles.r{count}]\nmodel = "m"\n')
        folders.trust()
        settings = folders.load(folders.deep)
        assert (settings.model, settings.source("model").name) == (name, str(file))
        assert len(settings.roles) == count, "what a lower file says stays"
    assert folders.load().files == {
        "global": folders.global_file,
        "laneway_global": folders.own_file,
        "repo": folders.repo_file,
        "laneway_repo": folders.own_repo_file,
    }


def test_the_users_own_file_is_where_xdg_says_and_never_in_the_repository(folders: Folders) -> None:
    """A relative XDG_CONFIG_HOME is none, as the specification has it."""
    moved = folders.home / "moved" / "laneway" / "config.toml"
    moved.parent.mkdir(parents=True)
    moved.write_text('[laneway]\nmodel = "moved"\n')
    (folders.repo / "laneway").mkdir()
    (folders.repo / "laneway" / "config.toml").write_text('[laneway]\nmodel = "evil"\n')
    assert folders.load(XDG_CONFIG_HOME=str(moved.parent.parent)).model == "moved"
    assert folders.load(XDG_CONFIG_HOME=".").model is None


def test_the_nearest_of_each_name_counts(folders: Folders) -> None:
    """Two files of a repository need not lie in one folder; ours goes first wherever it is."""
    folders.own_repo_file.write_text('[laneway]\nmodel = "own"\n')
    (folders.deep / ".atm.toml").write_text('[laneway]\nmodel = "shared"\nreasoning_effort = "low"\n')
    folders.trust(folders.deep)
    settings = folders.load(folders.deep)
    assert (settings.model, settings.reasoning_effort) == ("own", "low")
    assert settings.repo.files == (folders.deep / ".atm.toml", folders.own_repo_file)


def test_our_variables_go_before_the_seeds_and_an_empty_one_is_unset(folders: Folders) -> None:
    """LANEWAY_*, then ATM_*, then ATM_AGENT_MCP_*."""
    three = {"LANEWAY_IDENTITY": "a", "ATM_IDENTITY": "b", "ATM_AGENT_MCP_IDENTITY": "c"}
    assert folders.load(**three).identity == "a"
    assert folders.load(**{**three, "LANEWAY_IDENTITY": "  "}).identity == "b"
    assert folders.load(ATM_AGENT_MCP_IDENTITY="c").identity == "c"
    assert folders.load(ATM_TEAM="crew").team == "crew"
    assert folders.load(ATM_AGENT_MCP_MAIL_POLL_INTERVAL_MS="700").mail_poll_interval_ms == 700


def test_atm_home_moves_the_global_file(folders: Folders, tmp_path: Path) -> None:
    """As in ATM; blanks around it do not count."""
    moved = tmp_path / "elsewhere" / ".config" / "atm" / "config.toml"
    moved.parent.mkdir(parents=True)
    moved.write_text('[laneway]\nmodel = "moved"\n')
    assert folders.load(ATM_HOME=f" {tmp_path / 'elsewhere'} ").model == "moved"
    assert folders.load(ATM_HOME="  ").model is None


@pytest.mark.covers("FR-12.1")
@pytest.mark.parametrize("table", ["laneway", "plugins.atm-agent-mcp", "plugins.codex-mcp"])
def test_one_schema_goes_by_three_names(folders: Folders, table: str) -> None:
    """With `default_identity` and `identity` alike."""
    folders.say(f'[{table}]\nmodel = "x"\ndefault_identity = "scout"\n')
    assert (folders.load().model, folders.load().identity) == ("x", "scout")
    folders.say(f'[{table}]\nidentity = "right"\ndefault_identity = "left"\n')
    assert folders.load().identity == "right"


def test_within_a_file_our_table_goes_before_the_plugins_before_atms_own(folders: Folders) -> None:
    """From the most particular to the most general."""
    tables = ["core", "atm", "plugins.codex-mcp", "plugins.atm-agent-mcp", "laneway"]
    for count, table in enumerate(tables, start=1):
        lines = [f'[{name}]\nidentity = "of-{name.split(".")[-1]}"\n' for name in reversed(tables[:count])]
        folders.say("".join(lines))
        assert folders.load().identity == f"of-{table.split('.')[-1]}"


def test_a_repo_file_without_core_leaves_the_global_team_and_identity(folders: Folders) -> None:
    """ATM's own reader resets them there."""
    folders.global_file.write_text('[core]\ndefault_team = "crew"\nidentity = "ada"\n')
    folders.say('[laneway]\nmodel = "x"\n')
    settings = folders.load()
    assert (settings.team, settings.identity, settings.model) == ("crew", "ada", "x")
    folders.say('[core]\nidentity = "bob"\n')
    assert (folders.load().team, folders.load().identity) == ("crew", "bob")


def test_atms_word_for_nobody_is_no_identity(folders: Folders) -> None:
    """It is what ATM writes for people who have not said who they are."""
    folders.say('[core]\ndefault_team = "crew"\nidentity = "human"\n')
    settings = folders.load()
    assert (settings.identity, settings.source("identity").kind, settings.ignored) == ("codex", "default", ())


@pytest.mark.parametrize("said", ['"../../etc"', '"a/b"', '"-x"', '""', "7", '["x"]'])
def test_what_atm_may_like_and_we_cannot_use_is_set_aside_and_told(folders: Folders, said: str) -> None:
    """Its tables are not ours to be strict in; but a team becomes a folder, so it is never a path."""
    folders.say(f'[core]\nidentity = "ada"\ndefault_team = {said}\n')
    settings = folders.load()
    assert (settings.team, settings.identity) == ("default", "ada")
    (ignored,) = settings.ignored
    assert (ignored.keys, ignored.source.line) == (("team",), 3)
    assert "it must be a name of up to 64 letters" in str(ignored)


def test_other_programs_tables_are_left_alone(folders: Folders) -> None:
    """Whatever is in them."""
    folders.say(
        "top = 1\n[display]\nformat = 7\n[plugins.bridge]\nmodel = 3\n"
        '[[atm.post_send_hooks]]\ncommand = ["x"]\n'
        '[roles]\nmodel = "y"\n[retention]\nmax_age = 1979-05-27\n'
    )
    assert (folders.load().model, folders.load().ignored) == (None, ())
    folders.say("plugins = 3\ncore = 4\n")
    assert folders.load().ignored == ()


def test_the_search_ends_at_the_first_folder_with_git(folders: Folders) -> None:
    """Whether `.git` is a folder, a file or a broken link; an empty folder is what Codex leaves behind."""
    folders.say('[laneway]\nmodel = "outer"\n')
    assert folders.load(folders.deep).model == "outer"
    (folders.deep / ".git").mkdir()
    assert folders.load(folders.deep).model == "outer"
    (folders.deep / ".git").rmdir()
    (folders.deep / ".git").write_text("gitdir: /nowhere\n")
    assert folders.load(folders.deep).model is None
    (folders.deep / ".git").unlink()
    (folders.deep / ".git").symlink_to("nowhere")
    assert folders.load(folders.deep).model is None


def test_the_nearest_file_of_a_repository_counts(folders: Folders) -> None:
    """One file, not one for each folder: as in ATM."""
    folders.say('[laneway]\nmodel = "outer"\nidentity = "outer"\n')
    (folders.deep / ".atm.toml").write_text('[laneway]\nmodel = "inner"\n')
    folders.trust(folders.deep)
    assert (folders.load(folders.deep).model, folders.load(folders.deep).identity) == ("inner", "codex")
    assert folders.load(folders.deep).repo.root == folders.repo


def test_a_file_can_be_named_by_a_variable(folders: Folders) -> None:
    """It goes before the repository's; one that is missing is an error, since somebody meant it."""
    named = folders.home / "mine.toml"
    named.write_text('[laneway]\nmodel = "named"\nsandbox = "read-only"\n')
    folders.say('[laneway]\nmodel = "repo"\nidentity = "scout"\n')
    settings = folders.load(ATM_CONFIG=str(named))
    assert (settings.model, settings.identity, settings.sandbox) == ("named", "scout", "read-only")
    assert folders.load(LANEWAY_CONFIG="~/mine.toml").source("model").kind == "named"
    with pytest.raises(SettingError, match=r"^ATM_CONFIG: there is no file /no/file: correct it\.$"):
        folders.load(ATM_CONFIG="/no/file")


@pytest.mark.covers("FR-12.2", "FR-12.3")
def test_roles_are_merged_field_by_field(folders: Folders) -> None:
    """The repository adds its model to a role of the user's."""
    folders.global_file.write_text(
        '[laneway.roles.reviewer]\nsandbox = "workspace-write"\nmodel = "slow"\n'
        '[plugins.atm-agent-mcp.roles.scout]\nreasoning_effort = "low"\n'
    )
    folders.say('[plugins.codex-mcp]\nroles = { reviewer = { model = "quick" } }\n')
    settings = folders.load()
    assert settings.roles == {
        "reviewer": Role(model="quick", sandbox="workspace-write"),
        "scout": Role(reasoning_effort="low"),
    }
    assert settings.values["roles", "reviewer", "model"].source == Source("repo", str(folders.repo_file), 2)


def test_mail_is_switched_for_single_sessions_entry_by_entry(folders: Folders) -> None:
    """By agent id, which TOML wants in quotes."""
    folders.global_file.write_text('[laneway.per_thread_auto_mail]\n"codex:1" = false\n"codex:2" = false\n')
    folders.say('[laneway]\nper_thread_auto_mail = { "codex:2" = true }\n')
    assert folders.load().per_thread_auto_mail == {"codex:1": False, "codex:2": True}


def test_a_nested_table_is_read_in_every_way_of_writing_it(folders: Folders) -> None:
    """Under the three names of ours, key by key from every layer, and as variables."""
    folders.global_file.write_text("[plugins.codex-mcp.jobs]\nk_read = 1\nk_write = 1\nmax_jobs = 5\n")
    folders.own_file.parent.mkdir(parents=True)
    folders.own_file.write_text("[laneway]\njobs.k_write = 3\n[laneway.jobs.nodes]\nb.command = 'b'\n")
    settings = folders.load(LANEWAY_JOBS_MAX_JOBS="7", LANEWAY_JOBS_MAIL="on")
    assert (settings.jobs_k_read, settings.jobs_k_write, settings.jobs_max_jobs) == (1, 3, 7)
    assert (settings.jobs_mail, settings.value("jobs.k_write")) == (True, 3)
    assert settings.source("jobs.k_write") == Source("global", str(folders.own_file), 2)
    assert settings.source("jobs.max_jobs") == Source("environment", "LANEWAY_JOBS_MAX_JOBS")
    assert load({"jobs.k_read": 9}, {}, folders.repo, folders.home).jobs_k_read == 9


def test_machines_and_repositories_have_names_of_the_users_own(folders: Folders) -> None:
    """Entry by entry from the user's files; a path is relative to its file."""
    folders.global_file.write_text(
        '[laneway.jobs.nodes.gpu1]\ncommand = "ssh gpu1 laneway jobs node"\n'
        '[laneway.jobs.repositories]\nsite = "~/site"\n"my.app" = "app"\n'
    )
    settings = folders.load()
    assert settings.jobs_nodes == {"gpu1": NodeSetting("ssh gpu1 laneway jobs node")}
    assert settings.jobs_repositories == {
        "site": folders.home / "site",
        "my.app": folders.global_file.parent / "app",
    }


def test_words_of_the_past_are_read_as_todays(folders: Folders) -> None:
    """ATM's default was on-failure, which Codex no longer knows."""
    folders.global_file.write_text('[laneway]\napproval_policy = "on-failure"\ntransport = "mcp"\n')
    assert (folders.load().approval_policy, folders.load().transport) == ("on-request", "mcp-server")
    folders.global_file.write_text('[laneway]\nbackend = "mcp-server"\n')
    assert folders.load().transport == "mcp-server"


def test_paths_in_a_file_are_relative_to_it_and_others_to_the_shell(folders: Folders) -> None:
    """A bare name of a program is looked up on PATH, so it stays one."""
    (folders.home / "p.md").write_text("")
    (folders.repo / "q.md").write_text("")
    folders.say(
        '[laneway]\nbase_prompt_file = "~/p.md"\nextra_instructions_file = "q.md"\nlog_file = "/var/l.log"\n'
    )
    settings = folders.load(folders.deep)
    assert (settings.base_prompt_file, settings.log_file) == (folders.home / "p.md", Path("/var/l.log"))
    assert settings.extra_instructions_file == folders.repo / "q.md"
    folders.global_file.write_text('[laneway]\ncodex_bin = "bin/codex"\n')
    assert folders.load().codex_bin == str(folders.global_file.parent / "bin" / "codex")
    assert folders.load(LANEWAY_CODEX_BIN="./codex").codex_bin == "codex"
    folders.say('[laneway]\ncodex_bin = "codex-beta"\n')
    assert folders.load().codex_bin == "codex-beta"


def test_variables_spell_every_kind(folders: Folders) -> None:
    """Switches, numbers and lists too."""
    settings = folders.load(
        LANEWAY_AUTO_MAIL="off",
        LANEWAY_SUMMARIES="Yes",
        LANEWAY_MAX_TURNS="12",
        LANEWAY_TOOLS="codex, mail",
        LANEWAY_LOG_FILE="~/l.log",
    )
    assert (settings.auto_mail, settings.summaries, settings.max_turns) == (False, True, 12)
    assert (settings.tools, settings.log_file) == (("codex", "mail"), folders.home / "l.log")


def test_all_groups_of_tools_are_offered_unless_a_list_says_otherwise(folders: Folders) -> None:
    assert folders.load().tools == ("codex", "sessions", "mail", "jobs") == KEYS["tools"].default
    assert folders.load(LANEWAY_TOOLS="codex,jobs").tools == ("codex", "jobs")


def test_loading_needs_no_folder_and_makes_none(tmp_path: Path) -> None:
    """A home without any file, a folder that is gone."""
    make_repository(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    settings = load({}, {}, tmp_path / "gone", tmp_path / "nobody")
    assert (settings.identity, settings.team, settings.repo.files) == ("codex", "default", ())
    assert sorted(tmp_path.rglob("*")) == before
