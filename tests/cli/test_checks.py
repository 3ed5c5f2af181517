"""The checks of `doctor` one by one: what each sees, how it words it, and that none stops another."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from laneway.base.errors import EngineLost
from laneway.cli.checks import clients, codex, folders, lanes, machine, sandbox
from laneway.cli.checks.folders import Folder
from laneway.cli.checks.model import Check, CheckContext, Probe, in_thread, run_probe, worst
from laneway.cli.checks.sandbox import SandboxOutcome
from laneway.cli.registrations import Registration, Scan, Unreadable
from laneway.codex.binary import TESTED
from laneway.lanes.loading import LaneProblem, LoadedLanes

PATIENT_S = 30.0


def case(home: Path, path: str = "", codex_bin: str | None = None) -> CheckContext:
    return CheckContext(home, home, {"PATH": path, "HOME": str(home)}, codex_bin)


def told(checks: list[Check]) -> list[tuple[str, str]]:
    return [(check.name, check.severity) for check in checks]


# ── running ────────────────────────────────────────────────────────────────


async def test_a_probe_that_hangs_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    """Also one that hangs in a thread, which nobody can stop."""
    release = threading.Event()

    async def hang(case: CheckContext) -> list[Check]:
        await asyncio.get_running_loop().create_future()
        return []

    async def hang_in_thread(case: CheckContext) -> list[Check]:
        await in_thread(release.wait)
        return []

    for look in (hang, hang_in_thread):
        checks = await run_probe(Probe("slow", "waiting", look), case(tmp_path), 0.01)
        assert told(checks) == [("slow", "error")]
        assert checks[0].message == "There was no result within 0.01 s."
        assert "--deadline" in checks[0].remedy
    release.set()


async def test_a_probe_that_fails_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    """Whether the problem is ours or the system's."""

    async def lost(case: CheckContext) -> list[Check]:
        raise EngineLost("exit code 3")

    async def denied(case: CheckContext) -> list[Check]:
        return await in_thread(lambda: [Check("x", "ok", (tmp_path / "none").read_text())])

    first = await run_probe(Probe("a", "", lost), case(tmp_path), PATIENT_S)
    second = await run_probe(Probe("b", "", denied), case(tmp_path), PATIENT_S)
    assert first == [Check("a", "error", "Codex ended unexpectedly: exit code 3.")]
    message = f"It could not be checked: No such file or directory ({tmp_path / 'none'})."
    assert second == [Check("b", "error", message)]


def test_the_worst_check_decides() -> None:
    """And nothing at all is fine."""
    graded = [Check("a", "note", ""), Check("b", "error", ""), Check("c", "warning", "")]
    assert [worst(graded), worst(graded[:1]), worst([])] == ["error", "note", "ok"]


# ── the machine ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("system", "severity"),
    [("linux", "ok"), ("darwin", "note"), ("win32", "error"), ("freebsd14", "warning")],
)
def test_each_platform_is_told_plainly(system: str, severity: str) -> None:
    """Windows above all: not supported for now."""
    check = machine.on_platform(system, "Some-1.0")
    assert check.severity == severity
    assert (check.message == "Windows is not supported for now.") == (system == "win32")


def test_an_old_python_is_an_error() -> None:
    """With what to do."""
    assert told([machine.on_python((3, 10, 9)), machine.on_python((3, 11, 0))]) == [
        ("python", "error"),
        ("python", "ok"),
    ]


# ── which Codex ────────────────────────────────────────────────────────────


def put_codex(folder: Path, version: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\necho codex-cli {version}\n")
    path.chmod(0o700)
    return str(path)


async def test_other_executables_on_the_path_are_told_with_their_versions(tmp_path: Path) -> None:
    """The usual reason why two programs see different versions; the same one by a link counts once."""
    used, other = put_codex(tmp_path / "a", TESTED[0]), put_codex(tmp_path / "b", "0.150.0")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/codex").symlink_to(used)
    here = case(tmp_path, f"{tmp_path}/a:{tmp_path}/c:{tmp_path}/b:/bin")
    checks = await codex.look_for_binary(here)
    assert told(checks) == [("codex", "ok"), ("codex-versions", "ok"), ("codex-others", "note")]
    assert checks[0].facts == {"version": TESTED[0], "path": used, "source": "PATH", "tested": True}
    assert checks[1].facts["tested"] == TESTED
    assert checks[2].facts == {"others": [{"path": other, "version": "0.150.0"}]}


async def test_an_untested_version_is_a_note_and_one_too_old_an_error(tmp_path: Path) -> None:
    """A new Codex comes every week; it mostly works."""
    new = await codex.look_for_binary(case(tmp_path, "/bin", put_codex(tmp_path / "new", "9.9.9")))
    old = await codex.look_for_binary(case(tmp_path, "/bin", put_codex(tmp_path / "old", "0.50.0")))
    assert [told(new)[0], told(old)[0]] == [("codex", "note"), ("codex", "error")]
    assert "not tested with this Laneway" in new[0].message
    assert "is older than 0.104.0: upgrade it" in old[0].message


# ── who is logged in ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("account", "needed", "severity", "message"),
    [
        ("apiKey", True, "ok", "Logged in with an API key."),
        ("chatgpt", True, "ok", "Logged in with ChatGPT as m…@e…, plan plus."),
        ("amazonBedrock", False, "ok", "Logged in with Amazon Bedrock."),
        ("brandNew", True, "ok", "Logged in with brandNew."),
        (None, True, "warning", "Nobody is logged in."),
        (None, False, "ok", "Nobody is logged in, and the configured model provider does not need it."),
        (None, None, "warning", "Codex did not say whether somebody is logged in."),
    ],
)
def test_a_login_is_told_without_giving_it_away(
    account: str | None, needed: bool | None, severity: str, message: str
) -> None:
    """No address, no token; no login is a warning, because other providers exist."""
    found = codex.AccountAnswer(account, "margarethe@example.org", "plus") if account else None
    check = codex.on_login(codex.LoginAnswer(found, needed))
    assert (check.severity, check.message) == (severity, message)
    assert "margarethe" not in str(check)


# ── the sandbox ────────────────────────────────────────────────────────────

BWRAP = "bwrap: No permissions to create a new namespace, likely because the kernel …\n"
PANIC = "thread 'main' panicked:\nfilesystem-restricted execution requires bubblewrap to isolate\n"
OLD_PANIC = "permission profiles … are incompatible with --use-legacy-landlock\n"


@pytest.mark.parametrize(
    ("said", "landlock", "container", "remedy"),
    [
        (BWRAP, False, True, "--security-opt seccomp=unconfined"),
        (BWRAP, False, False, "unprivileged user namespaces"),
        (BWRAP, True, True, "Add `use_legacy_landlock = true`"),
        (PANIC, False, True, "Remove `use_legacy_landlock`"),
        (OLD_PANIC, False, True, "Remove `use_legacy_landlock`"),
    ],
)
def test_a_sandbox_that_does_not_start_comes_with_its_remedy(
    said: str, landlock: bool, container: bool, remedy: str
) -> None:
    """The words as Codex 0.133 to 0.166 and bubblewrap say them; landlock only if it was tried and works."""
    outcome = SandboxOutcome(False, False, False, said)
    check = sandbox.on_outcome(outcome, helps_landlock=landlock, is_container=container)
    assert check.severity == "error"
    assert " ".join(said.split()) in check.message
    assert remedy in check.remedy


def test_a_sandbox_that_lets_out_or_keeps_in_too_much_is_an_error() -> None:
    """Both are proved by files, not by words."""
    leaky, tight = SandboxOutcome(True, True, True), SandboxOutcome(True, False, False)
    assert "let a command write outside" in sandbox.on_outcome(leaky).message
    assert "cannot write in its own folder" in sandbox.on_outcome(tight).message
    assert {sandbox.on_outcome(each).severity for each in (leaky, tight)} == {"error"}
    assert sandbox.on_outcome(SandboxOutcome(True, True, False)).severity == "ok"


# ── folders ────────────────────────────────────────────────────────────────


def private(path: Path) -> Folder:
    return Folder("x", path, "X_HOME")


def test_a_folder_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    """Only proved to be possible."""
    assert told(folders.on_folder(private(tmp_path / "a/b/c"))) == [("folder-x", "ok")]
    assert list(tmp_path.iterdir()) == []


def test_a_good_folder_is_left_as_it_is(tmp_path: Path) -> None:
    """The proof writes, and takes it away again."""
    (tmp_path / "s").mkdir(mode=0o700)
    (tmp_path / "s/registry.json").touch(mode=0o600)
    assert told(folders.on_folder(private(tmp_path / "s"))) == [("folder-x", "ok")]
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["registry.json"]


def test_what_other_users_may_read_is_a_warning(tmp_path: Path) -> None:
    """The folder, and the files in it; the cache only if others may write."""
    top = tmp_path / "s"
    top.mkdir()
    top.chmod(0o755)
    (top / "deep").mkdir()
    for name in "abcde":
        (top / "deep" / name).touch()
        (top / "deep" / name).chmod(0o644)
    checks = folders.on_folder(private(top))
    assert told(checks) == [("folder-x", "warning"), ("folder-x", "warning")]
    assert checks[0].remedy == f"Run `chmod 700 '{top}'`."
    assert checks[1].message.endswith(" and 2 more.")
    assert told(folders.on_folder(Folder("x", top, "X_HOME", is_private=False))) == [("folder-x", "ok")]
    top.chmod(0o777)
    assert told(folders.on_folder(Folder("x", top, "X_HOME", is_private=False))) == [("folder-x", "warning")]


def test_a_folder_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    """The usual trace of a `sudo laneway`."""
    top = tmp_path
    if os.geteuid() == 0:
        os.chown(top, 12345, -1)
    else:
        top = Path("/usr")
    [check] = folders.on_folder(private(top))
    assert (check.severity, check.message) == ("error", f"{top} belongs to another user.")


def test_what_is_no_folder_is_an_error(tmp_path: Path) -> None:
    """A file, a dangling link, something below a file."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link", "file/below"):
        assert told(folders.on_folder(private(tmp_path / name))) == [("folder-x", "error")], name


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc as a folder that takes nothing")
def test_a_folder_that_takes_nothing_is_an_error() -> None:
    """Read-only and without room, even for root: there, or to be made."""
    messages = [
        check.message
        for check in folders.on_folder(Folder("x", Path("/proc/self"), "X_HOME", is_private=False))
    ]
    assert messages[0].startswith("The disk of /proc/self is full")
    assert messages[1].startswith("/proc/self is not writable")
    [check] = folders.on_folder(private(Path("/proc/self/laneway")))
    assert (check.severity, check.message[:49]) == (
        "error",
        "/proc/self/laneway cannot be created: /proc/self:",
    )
    assert check.remedy.endswith("or choose another place with X_HOME.")


def test_leftovers_of_killed_rehearsals_are_removed_and_told(tmp_path: Path) -> None:
    """Whoever still runs holds a lock and keeps theirs."""
    assert folders.on_leftovers(tmp_path / "none") == []
    (tmp_path / "home-dead").mkdir()
    (tmp_path / "home-dead/.lock").touch()
    [check] = folders.on_leftovers(tmp_path)
    assert check == Check("leftovers", "note", "Leftovers of a killed rehearsal were removed.")
    assert list(tmp_path.iterdir()) == []


# ── other programs ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("version", "is_enabled", "severity"),
    [
        ((0, 163, 0), True, "warning"),
        (None, True, "warning"),
        ((0, 153, 4), True, "note"),
        ((0, 163, 0), False, "note"),
    ],
)
def test_a_stale_registration_is_as_bad_as_it_is(
    version: tuple[int, ...] | None, is_enabled: bool, severity: str
) -> None:
    """It still works on an old Codex, and hurts nobody where it is switched off. No arguments are told."""
    entry = Registration(
        Path("/x/.mcp.json"), ("mcpServers", "gpt"), "codex", ("-c", "k=hunter2"), is_enabled
    )
    [check] = clients.on_scan(Scan((entry,), (), (entry.file,)), version)
    assert check.severity == severity
    assert "/x/.mcp.json starts `codex mcp-server` as 'gpt'" in check.message
    assert "hunter2" not in str(check)
    assert "`laneway migrate --write`" in check.remedy


def test_a_file_that_cannot_be_read_is_a_note() -> None:
    """It may well be none of ours."""
    found = Scan((), (Unreadable(Path("/x/a.json"), "it is not UTF-8"),), ())
    assert [(check.severity, check.message) for check in clients.on_scan(found, None)] == [
        ("note", "/x/a.json could not be read: it is not UTF-8."),
        ("ok", "No program here is configured to start the removed `codex mcp-server` (0 files were read)."),
    ]


async def test_copies_that_an_earlier_version_left_beside_configs_are_told(tmp_path: Path) -> None:
    """They may hold keys, and lie where a repository could take them in."""
    assert clients.on_copies([]) == []
    for number in range(4):
        (tmp_path / f".mcp.json.laneway-backup-2026010{number}T000000Z").write_text("{}")
    found = [check for check in await clients.look(case(tmp_path)) if check.name == "old-copies"]
    assert told(found) == [("old-copies", "note")]
    assert f"{tmp_path}/.mcp.json.laneway-backup-20260100T000000Z" in found[0].message
    assert found[0].message.endswith(" and 1 more.")


# ── lanes ──────────────────────────────────────────────────────────────────


async def test_without_lane_plugins_nothing_is_said_of_them(tmp_path: Path) -> None:
    """Nor if the settings cannot be read."""
    assert await lanes.look(case(tmp_path)) == []


def test_a_lane_plugin_that_cannot_be_imported_is_a_warning_and_the_others_are_listed() -> None:
    """Each problem by itself."""
    problems = (LaneProblem("a", "There is no module a."), LaneProblem("b", "The module b is broken."))
    loaded = LoadedLanes({"c": ("run", "draw"), "d": ("paint",)}, problems)
    checks = lanes.on_loaded(loaded)
    assert told(checks) == [("lanes", "warning"), ("lanes", "warning"), ("lanes", "ok")]
    assert [check.message for check in checks] == [
        "There is no module a.",
        "The module b is broken.",
        "Lane plugins: /run, /draw, /paint.",
    ]
    assert all("chat.lanes" in check.remedy for check in checks[:2])


async def test_each_lane_that_cannot_be_used_is_a_note_with_its_reason(tmp_path: Path) -> None:
    """Nothing is wrong with Laneway where nobody uses Claude."""
    assert await lanes.look_at_chat(case(tmp_path)) == [], "settings that cannot be read are told elsewhere"
    checks = lanes.on_problems({"claude": "Log in.", "codex": None, "rehearse": None})
    assert told(checks) == [("chat", "ok"), ("chat", "note")]
    assert [check.message for check in checks] == [
        "Lanes that `laneway chat` can use: /codex, /rehearse.",
        "The lane /claude cannot be used: Log in.",
    ]
    assert told(lanes.on_problems({"codex": "Log in."})) == [("chat", "note")]


def test_a_terminal_without_its_packages_is_a_note_that_says_how_to_get_them() -> None:
    """A pipe needs none."""
    assert lanes.on_terminal([]) == []
    (check,) = lanes.on_terminal(["prompt_toolkit"])
    assert (check.severity, check.message) == ("note", "In a terminal `laneway chat` needs prompt_toolkit.")
    assert "laneway[chat]" in check.remedy
