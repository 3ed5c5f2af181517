"""Fetches the programs that `make test-peers` runs Laneway against.

Older and newer versions of Codex and of Claude Code; Node, MCP's Inspector and its conformance suite;
`acpx`, JupyterLab's client and a provider of the AI SDK, which drive ACP agents; basedpyright, which checks
lane plugins; another MCP server and other ACP agents, which only `make bench` measures. Uses only pip and, if
installed, npm. What cannot be fetched is reported and left out; the tests count it. Run by the system's
Python, which has pip.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

FROM_PYPI = ("0.133.0", "0.153.4")
CLAUDE_SDKS = ("0.2.169", "0.2.176", "0.2.183", "0.2.184")
"""Each brings one version of Claude Code: `TESTED` in `src/laneway/claude/version.py`."""
FROM_NPM = ("0.104.0", "latest")
FROM_PYPI_WITH_ALL = {
    "jupyter-ai-acp-client-0.3.3": "jupyter-ai-acp-client==0.3.3",
    "basedpyright-1.40.2": "basedpyright==1.40.2",
}
"""By folder: from PyPI, with their dependencies, for the Python that runs this."""
TOOLS = {
    "node-22": "node-{system}-{machine}@22",
    "inspector-2.12.0": "@modelcontextprotocol/inspector@2.12.0",
    "codex-mcp-server-1.4.10": "codex-mcp-server@1.4.10",
    "acpx-0.19.1": "acpx@0.19.1",
    "acp-ai-provider-0.2.9": "@mcpc-tech/acp-ai-provider@0.2.9",
    "codex-acp-2.6.0": "@agentclientprotocol/codex-acp@2.6.0",
    "zed-codex-acp-0.16.0": "@zed-industries/codex-acp@0.16.0",
    "conformance-0.1.16": "@modelcontextprotocol/conformance@0.1.16",
    "conformance-0.2.0-alpha.12": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
}
"""By folder. The installed Node may be too old for the others; npm has one for each system."""
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def main(folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    for version in FROM_PYPI:
        name = f"openai-codex-cli-bin=={version}"
        fetch(folder / f"codex-{version}", lambda into, name=name: by_pip(into, "--no-deps", name))
    for version in CLAUDE_SDKS:
        name = f"claude-agent-sdk=={version}"
        fetch(folder / f"claude-agent-sdk-{version}", lambda into, name=name: by_pip(into, "--no-deps", name))
    for folder_name, requirement in FROM_PYPI_WITH_ALL.items():
        fetch(folder / folder_name, lambda into, requirement=requirement: by_pip(into, requirement))
    for version in FROM_NPM:
        if shutil.which("npm"):
            exact = latest() if version == "latest" else version
            fetch(folder / f"codex-{exact}", lambda into, exact=exact: by_npm(exact, into))
        else:
            print(f"left out: Codex {version} comes from npm, which is not here")
    for name, package in TOOLS.items():
        if shutil.which("npm"):
            fetch(folder / name, lambda into, package=package: install(package, into))
        else:
            print(f"left out: {name} comes from npm, which is not here")
    return 0


def fetch(into: Path, how: object) -> None:
    """Fetch once; a half-fetched folder never looks like a whole one."""
    if into.exists():
        return
    partial = into.with_name(into.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        how(partial)  # type: ignore[operator]
    except (subprocess.CalledProcessError, OSError) as problem:
        print(f"left out: {into.name}: {problem}")
        shutil.rmtree(partial, ignore_errors=True)
        return
    partial.rename(into)
    print(f"fetched {into.name}")


def by_pip(into: Path, *words: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-warn-conflicts", "--target", str(into)]
    subprocess.run([*pip, *words], check=True)


def by_npm(version: str, into: Path) -> None:
    """The npm package ships one archive per platform; only the binary inside is needed."""
    system, machine = npm_platform()
    name = f"@openai/codex@{version}-{system}-{machine}"
    subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(into), name], check=True, capture_output=True
    )
    (archive,) = into.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    archive.unlink()


def install(package: str, into: Path) -> None:
    """Install a package with its dependencies."""
    system, machine = npm_platform()
    name = package.format(system=system, machine=machine)
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(into), name]
    subprocess.run(words, check=True, capture_output=True)


def npm_platform() -> tuple[str, str]:
    """This machine, by the names that npm's packages use."""
    return {"linux": "linux", "darwin": "darwin"}[sys.platform], MACHINES[platform.machine().lower()]


def latest() -> str:
    answer = subprocess.run(
        ["npm", "view", "@openai/codex", "version", "--json"], check=True, capture_output=True, text=True
    )
    return str(json.loads(answer.stdout))


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
