"""Team mail and the checks of this machine on the console: on the files of all, and by the real `doctor`."""

from __future__ import annotations

from pathlib import Path

from tests.app.console.support import WORK, desk

MANUAL = {"LANEWAY_AUTO_MAIL": "false"}


async def test_mail_is_read_without_marking_it_and_sent_under_a_free_name_only(
    tmp_path: Path, run: Path
) -> None:
    """What a session holds, nobody else writes as; what is sent is in the member's own inbox."""
    async with (
        desk(tmp_path, run) as at,
        at.server("--team", "crew", env=MANUAL) as client,
        at.console() as console,
    ):
        await client.result("codex", identity="ann", prompt="%say here", **WORK)
        await client.content("atm_send", identity="bob", to="ann", message="good morning")
        assert (await console.data("mail"))["team"] == "crew"
        (member,) = [
            row for row in (await console.data("mail/crew/members"))["members"] if row["name"] == "ann"
        ]
        assert (member["unread"], member["is_member"]) == (1, True)
        (message,) = (await console.data("mail/crew/inboxes/ann"))["messages"]
        assert (message["from"], message["text"], message["read"]) == ("bob", "good morning", False)

        taken = await console.post("mail/crew/send", sender="ann", to="ann", text="forged")
        assert (taken.status, "ann" in taken.data["error"]) == (409, True)
        sent = await console.post("mail/crew/send", sender="eve", to="ann", text="hello from the page")
        assert (sent.status, sent.data["to"]) == (200, "ann@crew")
        lost = await console.post("mail/crew/send", sender="eve", to="no such/name", text="x")
        assert lost.status == 409
        got = await client.content("atm_read", identity="ann")
        assert [each["text"] for each in got["messages"]] == ["good morning", "hello from the page"]


async def test_the_checks_name_what_fails_and_what_to_do(tmp_path: Path, run: Path) -> None:
    """A Codex that is not there; the console itself goes on."""
    async with desk(tmp_path, run) as at:
        missing = str(at.work / "no-codex")
        async with at.console(LANEWAY_CODEX_BIN=missing, LANEWAY_CLAUDE_BIN=missing) as console:
            assert (await console.post("health/run")).data["is_running"]
            told = await console.until("health", lambda told: told["ended_at"])
            assert (told["is_running"], told["problem"]) == (False, "")
            found = {check["name"]: check for check in told["checks"]}
            assert found["codex"]["severity"] == "error", found
            assert "no-codex" in found["codex"]["message"]
            assert "correct the path" in found["codex"]["message"]
            assert found["python"]["severity"] == "ok"
