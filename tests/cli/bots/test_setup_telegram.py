"""`laneway setup telegram` as people run it: at a terminal, in a script, a second time, and taken back."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

from laneway.app.bots import hold_bot
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.testing.fake_telegram import FakeTelegram
from tests.cli.bots.support import (
    DEADLINE_S,
    begin,
    code_on,
    end,
    environment,
    everything,
    settings_file,
    table,
)
from tests.cli.support import in_terminal, laneway


async def test_a_person_is_led_from_the_token_to_a_message_in_the_chat(tmp_path: Path) -> None:
    """The token is typed and never shown; a wrong one is asked for again."""
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, home = telegram.person("ada"), telegram.private(telegram.person("ada"))
        env = environment(tmp_path, telegram)
        async with in_terminal("setup", "telegram", env=env, cwd=tmp_path) as screen:
            await screen.wait_for("@BotFather")
            await screen.wait_for("Paste the token")
            screen.type("7000000001:AAwrong-laneway-tests-only-token-00\r")
            await screen.wait_for("Telegram refused the token")
            await screen.wait_until(lambda: screen.text.count("Paste the token") == 2, "a second prompt")
            screen.type(f"{telegram.token}\r")
            await screen.wait_for("This is the token of @laneway_bot")
            await screen.wait_for("Waiting for it")
            ada.write(home, f"/start {code_on(screen.text)}")
            await screen.wait_for("Ada (user")
            assert (await screen.wait_end()).code == 0
            assert "Telegram is set up (~/.config/laneway/config.toml)" in screen.text
            assert "laneway chat --platform telegram" in screen.text
            shown = screen.raw.decode("utf-8", "replace")
        assert telegram.token not in shown
        assert "AAwrong" not in shown
        assert "Laneway is set up here" in telegram.text(home)
        assert table(tmp_path) == {
            "token": telegram.token,
            "allowed_users": [ada.user_id],
            "owners": [ada.user_id],
        }
        assert stat.S_IMODE(settings_file(tmp_path).stat().st_mode) == 0o600
        assert telegram.token not in everything(tmp_path)


async def test_without_a_terminal_the_code_is_printed_and_the_rest_is_one_object(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, team = telegram.person("ada"), telegram.group("Team")
        env = environment(tmp_path, telegram)
        process, told, code = await begin("telegram", "--json", token=telegram.token, env=env, home=tmp_path)
        ada.write(team, f"@laneway_bot {code}")
        returned, _, _ = await end(process, bytearray())
        assert returned == 0
        assert telegram.token.encode() not in told
        assert table(tmp_path)["allowed_chats"] == [str(team.chat_id)]
        assert "Laneway is set up here" in telegram.text(team)


async def test_json_says_who_and_where_and_never_the_token(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada = telegram.person("ada")
        env = environment(tmp_path, telegram)
        process, _, code = await begin("telegram", "--json", token=telegram.token, env=env, home=tmp_path)
        ada.write(telegram.private(ada), code)
        _, out, err = await end(process, bytearray())
        result = json.loads(out)
        assert telegram.token not in out + err
        assert (result["client"], result["action"], result["bot"]) == ("telegram", "added", "@laneway_bot")
        assert (result["user_id"], result["chat_id"], result["is_token_stored"]) == (ada.user_id, "", True)
        assert result["can_undo"]


async def test_a_second_person_is_added_and_force_makes_one_the_only_one(tmp_path: Path) -> None:
    """Comments and other settings of the file stay; what others could read is private from then on."""
    file = settings_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n[laneway]\nmodel = "gpt-5"  # and this\n')
    file.chmod(0o644)
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        env = environment(tmp_path, telegram)
        users = []
        for words, name in (((), "ada"), ((), "ben"), (("--force",), "cyn")):
            person = telegram.person(name)
            users.append(person.user_id)
            process, told, code = await begin(
                "telegram", *words, token=telegram.token, env=env, home=tmp_path
            )
            person.write(telegram.private(person), code)
            returned, out, _ = await end(process, told)
            assert returned == 0, out
            assert ("could be read by other users" in out) == (name == "ada")
            expected = users if name != "cyn" else users[2:]
            assert table(tmp_path)["allowed_users"] == expected
            assert table(tmp_path)["owners"] == expected
        text = file.read_text()
        assert text.startswith('# mine\n[laneway]\nmodel = "gpt-5"  # and this\n')
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for expected in (users[:2], users[:1]):
            undone = await laneway("setup", "--undo", "telegram", env=env)
            assert undone.code == 0, undone.out
            assert table(tmp_path)["allowed_users"] == expected
            assert telegram.token not in undone.out
        assert (await laneway("setup", "--undo", env=env)).code == 0
        assert file.read_text() == '# mine\n[laneway]\nmodel = "gpt-5"  # and this\n'
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_token_in_the_environment_is_used_and_not_stored(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada = telegram.person("ada")
        env = {**environment(tmp_path, telegram), "LANEWAY_TELEGRAM_TOKEN": telegram.token}
        async with in_terminal("setup", "telegram", env=env, cwd=tmp_path) as screen:
            await screen.wait_for("comes from LANEWAY_TELEGRAM_TOKEN")
            await screen.wait_for("Waiting for it")
            ada.write(telegram.private(ada), code_on(screen.text))
            assert (await screen.wait_end()).code == 0
            assert "Set LANEWAY_TELEGRAM_TOKEN wherever" in screen.text
        assert table(tmp_path) == {"allowed_users": [ada.user_id], "owners": [ada.user_id]}


async def test_remove_takes_the_table_out_and_says_that_the_token_lives_on(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, env = telegram.person("ada"), environment(tmp_path, telegram)
        process, told, code = await begin("telegram", token=telegram.token, env=env, home=tmp_path)
        ada.write(telegram.private(ada), code)
        await end(process, told)
        removed = await laneway("setup", "telegram", "--remove", env=env)
        assert removed.code == 0
        assert "/revoke" in removed.out
        assert table(tmp_path) == {}
        again = await laneway("setup", "telegram", "--remove", "--json", env=env)
        assert json.loads(again.out)["action"] == "absent"
        assert (await laneway("setup", "--undo", env=env)).code == 0
        assert table(tmp_path)["token"] == telegram.token


async def test_a_message_that_cannot_be_sent_puts_the_settings_back(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, env = telegram.person("ada"), environment(tmp_path, telegram)
        process, told, code = await begin("telegram", token=telegram.token, env=env, home=tmp_path)
        telegram.faults.fail("sendMessage", 403, description="Forbidden: bot was blocked by the user")
        ada.write(telegram.private(ada), code)
        returned, out, _ = await end(process, told)
        assert returned == 1
        assert "was not set up" in out
        assert "bot was blocked by the user" in out
        assert not settings_file(tmp_path).exists()


async def test_a_webhook_is_removed_only_if_somebody_agrees(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        ada, env = telegram.person("ada"), environment(tmp_path, telegram)
        telegram.world.webhook = "https://bots.example.org/hook/s3cret"
        env["LANEWAY_TELEGRAM_TOKEN"] = telegram.token
        refused = await laneway("setup", "telegram", "--json", env=env)
        assert refused.code == 2
        assert "bots.example.org" in refused.err
        assert "--force" in refused.err
        assert "s3cret" not in refused.err
        async with in_terminal("setup", "telegram", env=env, cwd=tmp_path) as screen:
            await screen.wait_for("Enter means no")
            screen.type("n\r")
            assert (await screen.wait_end()).code == 2
        assert telegram.world.webhook
        async with in_terminal("setup", "telegram", env=env, cwd=tmp_path) as screen:
            await screen.wait_for("Enter means no")
            screen.type("y\r")
            await screen.wait_for("Waiting for it")
            ada.write(telegram.private(ada), code_on(screen.text))
            assert (await screen.wait_end()).code == 0
        assert telegram.world.webhook == ""


async def test_what_goes_wrong_is_one_sentence_without_the_token(tmp_path: Path) -> None:
    """A wrong token, no network, no answer, another program that polls, nobody who types, no terminal."""
    wrong = "7000000001:AAwrong-laneway-tests-only-token-00"
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        env = environment(tmp_path, telegram)
        away = {"LANEWAY_CHAT_TELEGRAM_API_URL": "http://127.0.0.1:9"}
        good, bad = f"{telegram.token}\n", f"{wrong}\n"
        cases: list[tuple[list[str], str, dict[str, str], int, str]] = [
            (["--token-stdin"], bad, {}, 2, "Telegram refused the token"),
            (["--token-stdin"], "\n", {}, 2, "no token on standard input"),
            (["--token-stdin"], "nonsense\n", {}, 2, "is not valid"),
            (["--token-stdin"], good, away, 2, "could not be reached"),
            (["--token-stdin", "--deadline", "0.2"], good, {}, 1, "Nobody has typed the code within 0.2 s"),
            (["--json"], "", {}, 2, "no terminal to ask for the token"),
            (["--json", "--door", "mcp"], "", {}, 2, "does not take --door"),
            (["--start"], "", {}, 2, "does not take --start"),
        ]
        for words, stdin, more, code, problem in cases:
            ran = await laneway("setup", "telegram", *words, env={**env, **more}, stdin=stdin)
            assert (ran.code, ran.err.count("\n")) == (code, 1), ran.err
            assert problem in ran.err
            assert telegram.token not in ran.out + ran.err
            assert "AAwrong" not in ran.out + ran.err
        process, told, _ = await begin("telegram", token=telegram.token, env=env, home=tmp_path)
        await telegram.until(lambda: telegram.server.is_polled)
        telegram.world.webhook = "https://bots.example.org/"
        telegram.server.close()
        returned, _, err = await end(process, told)
        assert returned == 2
        assert "Another program asks for this bot's messages" in err
    assert not settings_file(tmp_path).exists()


async def test_a_bot_that_runs_is_left_alone(tmp_path: Path) -> None:
    """Its messages would go to the setup instead."""
    locks = ConversationLockFiles(tmp_path / ".local" / "state" / "laneway" / "bots")
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        release = hold_bot("telegram", telegram.token, locks)
        try:
            env = environment(tmp_path, telegram)
            ran = await laneway("setup", "telegram", "--token-stdin", env=env, stdin=f"{telegram.token}\n")
        finally:
            release()
        assert ran.code == 2
        assert "is run by laneway chat, process" in ran.err
        assert telegram.calls == []


async def test_settings_that_cannot_be_edited_are_told_before_anything_is_asked(tmp_path: Path) -> None:
    file = settings_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text("[laneway\n")
    async with asyncio.timeout(DEADLINE_S), FakeTelegram() as telegram:
        env = environment(tmp_path, telegram)
        ran = await laneway("setup", "telegram", "--token-stdin", env=env, stdin=f"{telegram.token}\n")
        assert ran.code in (1, 2)
        assert ran.err.count("\n") == 1
        assert telegram.calls == []
