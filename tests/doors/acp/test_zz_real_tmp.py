from __future__ import annotations
from pathlib import Path
from tests.doors.acp.support import FULL, UNSTABLE, select, stage, Refused

async def test_life(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        async with here.agent(capabilities=FULL) as client:
            client.on_permission = lambda params: select(params, "allow_once")
            s = await client.new()
            await client.prompt(s, "%run echo one\n%say Ran.")
            await client.prompt(s, "%patch a.txt x\\ny\n%say Added.")
            n = len(client.updates)
            print("mode", await client.ask("session/set_mode", {"sessionId": s, "modeId": "code"}))
            print(await client.prompt(s, "%say Hi."), client.kinds(s)[n:])
            n = len(client.updates)
            print(list((await client.ask("session/set_config_option", {"sessionId": s, "configId": "mode", "value": "ask"}))))
            print(await client.prompt(s, "%say Hi."), client.kinds(s)[n:])
            for m,p,l in (("session/load",{"sessionId":"sess_01a1e490-7f7e-7e51-9805-c51686492299","cwd":"/","mcpServers":[]},True),("session/prompt",{"sessionId":"sess_nope","prompt":[]},True),("session/close",{"sessionId":"sess_nope"},True),("session/delete",{"sessionId":"sess_nope"},True),("session/new",{"cwd":"/does/not/exist","mcpServers":[]},True),("session/new",{},False),("session/resume",{"sessionId":"nope","cwd":"/"},True),("session/set_title",{"sessionId":s,"title":"x"},False),("authenticate",{"methodId":"zz"},True)):
                try: print(m, await client.refusal(m,p,lint=l))
                except AssertionError as e: print("NOT REFUSED", str(e)[:300])
            try: print(await client.prompt(s, "%fail 500 out"))
            except Refused as e: print("fail", e.error)
            n = len(client.updates)
            print("compact", await client.prompt(s, "/compact"), client.kinds(s)[n:])
            print("unknown", await client.prompt(s, "/zzz"), client.messages(s)[-1])
            print("empty", end=" ")
            try: print(await client.prompt(s, []))
            except Refused as e: print(e.error)
        async with here.agent(capabilities={}) as client:
            print("load", list(await client.load(s)), client.kinds(s))
            await client.ask("session/close", {"sessionId": s})
            print("resume", list(await client.resume(s)))
            print(await client.prompt(s, "%say Again."))
            await client.ask("session/close", {"sessionId": s})
            print("delete", await client.ask("session/delete", {"sessionId": s}))
            print(await client.ask("session/list", {}))
        async with here.agent(capabilities=UNSTABLE, unstable=["session/fork","usage","session/set_title"]) as client:
            s = await client.new()
            print(client.hello["agentCapabilities"]["sessionCapabilities"])
            print(await client.prompt(s, "%say Hi."))
            try:
                f = await client.ask("session/fork", {"sessionId": s, "cwd": str(here.work)}); print(f["sessionId"])
            except Refused as e: print(e.error)
