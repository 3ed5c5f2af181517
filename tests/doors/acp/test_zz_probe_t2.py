import subprocess
from tests.doors.acp.support import stage
from tests.doors.acp.witness import *
async def test_p(tmp_path):
    async with stage(tmp_path) as here:
        configure(here, 'sandbox_mode = "workspace-write"')
        subprocess.run(["git", "init", "-q", str(here.work)], check=True)
        async with here.agent() as client:
            s = await client.new()
            print((here.home/"config.toml").read_text())
            await client.prompt(s, "%say x")
        print((here.home/"config.toml").read_text())
