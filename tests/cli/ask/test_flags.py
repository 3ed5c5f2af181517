"""The flags that `laneway ask` has in common with `codex exec`, each by its effect on the real Codex."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Ran, laneway
from tests.codex.support import Stage, real

PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def ask(here: Stage, *words: str, state: Path | None = None) -> Ran:
    env = {"CODEX_HOME": str(here.rehearsal.home)}
    if state is not None:
        env["XDG_STATE_HOME"] = str(state)
    return await laneway("ask", "-C", str(here.rehearsal.work), *words, env=env)


def kept(state: Path) -> list[str]:
    """The threads that `--last` could mean."""
    return [json.loads(path.read_text())["thread_id"] for path in state.rglob("*.json")]


def said_by_users(here: Stage) -> list[str]:
    """All prompts of the conversation that the model was sent last."""
    items: list[dict[str, Any]] = here.requests[-1]["input"]
    texts = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
    return [text for text in texts if text and not text.lstrip().startswith("<")]


async def test_images_reach_the_model(tmp_path: Path) -> None:
    """Several flags, or several behind one."""
    names = [tmp_path / name for name in ("a.png", "b.png", "c.png")]
    for name in names:
        name.write_bytes(PIXEL)
    async with real() as here:
        ran = await ask(here, "-i", str(names[0]), "--image", f"{names[1]},{names[2]}", "look")
        assert ran.code == 0
        assert here.model_input().count("data:image/png;base64,") == 3


async def test_the_last_message_is_written_to_a_file_too(tmp_path: Path) -> None:
    """It alone, as it is."""
    async with real() as here:
        ran = await ask(here, "-o", str(tmp_path / "last"), "%say first\n%run true\n%say second")
        assert (ran.code, ran.out) == (0, "first\nsecond\n")
        assert (tmp_path / "last").read_bytes() == b"second"
        failed = await ask(here, "--output-last-message", str(tmp_path / "last"), "%fail 500")
        assert failed.code == 1
        assert (tmp_path / "last").read_bytes() == b"", "an older message would be taken for this one"
        assert f"no message came: {tmp_path}/last is empty" in failed.err


async def test_the_answer_must_follow_a_schema(tmp_path: Path) -> None:
    """The model is told so in the same words that Codex has."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    async with real() as here:
        assert (await ask(here, "--output-schema", str(tmp_path / "schema.json"), "hi")).code == 0
        told = here.requests[-1]["text"]["format"]
        assert (told["type"], told["schema"]["required"]) == ("json_schema", ["n"])


async def test_further_folders_can_be_written_to_beside_those_of_the_users_own_config() -> None:
    """On a new thread and on one that is gone on with."""
    async with real() as here:
        above = here.rehearsal.home.parent
        for name in ("mine", "added", "other"):
            (above / name).mkdir()
        config = here.rehearsal.home / "config.toml"
        config.write_text(
            config.read_text() + f'\n[sandbox_workspace_write]\nwritable_roots = ["{above}/mine"]\n'
        )
        touch = "\n".join(f"%run touch {above}/{name}/NAME" for name in ("mine", "added", "other"))
        words = ("-s", "workspace-write", "-a", "never", "--add-dir", str(above / "added"))
        first = await ask(here, *words, "--json", touch.replace("NAME", "new"))
        thread_id = json.loads(first.out.splitlines()[0])["thread_id"]
        again = await ask(here, *words, "--thread", thread_id, touch.replace("NAME", "again"))
        assert (first.code, again.code) == (0, 0)
        made = {
            str(path.relative_to(above))
            for name in ("mine", "added", "other")
            for path in (above / name).iterdir()
        }
        assert made == {"mine/new", "mine/again", "added/new", "added/again"}
        assert "--add-dir has no effect" not in first.err + again.err
        useless = await ask(here, "-s", "read-only", "--add-dir", str(above / "added"), "%say hi")
        assert "--add-dir has no effect: the sandbox is read-only" in useless.err


async def test_a_profile_lies_over_the_users_config_and_under_the_flags() -> None:
    """`$CODEX_HOME/NAME.config.toml`, as `codex exec -p` reads it."""
    async with real() as here:
        text = 'model = "gpt-5.4"\nmodel_reasoning_effort = "low"\nsandbox_mode = "workspace-write"\n'
        (here.rehearsal.home / "fast.config.toml").write_text(text + "[features]\nmulti_agent = false\n")
        assert (await ask(here, "-p", "fast", "hi")).code == 0
        told = here.requests[-1]
        assert (told["model"], told["reasoning"]["effort"]) == ("gpt-5.4", "low")
        assert '"sandbox_mode":"workspace-write"' in told["client_metadata"]["x-codex-turn-metadata"]
        await ask(here, "--profile", "fast", "-m", "gpt-5.5", "-c", "model_reasoning_effort=high", "hi")
        told = here.requests[-1]
        assert (told["model"], told["reasoning"]["effort"]) == ("gpt-5.5", "high")


async def test_last_goes_on_with_the_newest_thread_of_this_folder(tmp_path: Path) -> None:
    """Not with one of another folder, nor with one that another program had here."""
    async with real() as here:
        other = here.rehearsal.home.parent / "other"
        other.mkdir()
        first = await ask(here, "%say one", state=tmp_path)
        assert "go on: laneway ask -C " in first.err
        assert '--last "…"' in first.err
        await ask(here, "-C", str(other), "%say elsewhere", state=tmp_path)
        await here.session()  # another program's, newer than ours
        again = await ask(here, "--last", "%say two", state=tmp_path)
        assert (again.code, again.out) == (0, "two\n")
        assert said_by_users(here) == ["%say one", "%say two"]
        await ask(here, "%say three", state=tmp_path)
        await ask(here, "--last", "%say four", state=tmp_path)
        assert said_by_users(here) == ["%say three", "%say four"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--last", "hi"], 2, "`laneway ask` has no earlier thread in "),
        (["--thread", "nope", "hi"], 4, "Codex has no thread nope"),
        (["-i", "/no/image.png", "hi"], 2, "There is no image /no/image.png."),
        (["-i", ".", "hi"], 2, ". is a folder: give the image as a file."),
        (["-i", "/dev/null", "hi"], 2, "/dev/null is not a regular file: give the image as a file."),
        (["--output-schema", "/tmp", "hi"], 2, "/tmp is a folder: give the schema as a file."),
        (["--output-schema", "", "hi"], 2, "The name of the schema file is empty."),
        (["--output-schema", "/no/schema", "hi"], 2, "There is no schema /no/schema."),
        (["--output-schema", __file__, "hi"], 2, "The schema "),
        (["-o", "/no/folder/file", "hi"], 2, "/no/folder/file cannot be written"),
        (["--add-dir", "/no/folder", "hi"], 2, "There is no folder /no/folder."),
        (["-p", "nope", "hi"], 2, "There is no profile nope: Codex looks for it in "),
        (["-p", "../x", "hi"], 2, "A profile name consists of letters, digits, - and _, unlike '../x'."),
    ],
)
async def test_what_is_wrong_is_said_in_one_plain_sentence(
    words: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    """No parser's words, and nothing was asked."""
    async with real() as here:
        ran = await ask(here, *words, state=tmp_path)
        assert (ran.code, ran.err.count("\n")) == (code, 1)
        assert ran.err.startswith(f"laneway: {sentence}")
        assert here.requests == []


async def test_a_rehearsal_keeps_no_thread_to_go_on_with(tmp_path: Path) -> None:
    """And promises none."""
    ran = await laneway("ask", "--rehearse", "%say hi", env={"XDG_STATE_HOME": str(tmp_path)})
    assert ran.code == 0
    assert "--last" not in ran.err
    assert kept(tmp_path) == []


async def test_the_end_says_what_it_took_and_how_to_go_on(tmp_path: Path) -> None:
    """On standard error."""
    async with real() as here:
        ran = await ask(here, "%usage 12000\n%say hi", state=tmp_path)
        (thread_id,) = kept(tmp_path)
        *_, took, how = ran.err.splitlines()
        assert took.endswith(" · 12.0k tokens")
        assert how.endswith(f" or with --thread {thread_id}")
        assert ran.out == "hi\n"
