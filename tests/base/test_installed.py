"""How Laneway was installed, told by the files that each installer leaves; and the lines that fit it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

import laneway as package
from laneway.base.installed import PACKAGES, Installation, installed_how

ROOT = Path(__file__).resolve().parent.parent.parent
RECEIPT = """\
[tool]
requirements = [
    { name = "laneway", extras = ["ws"], path = "/x/laneway.whl" },
    { name = "uvicorn" },
]
"""


def test_every_extra_has_its_packages() -> None:
    """The table here and the one that installers read are the same."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: tuple(word.split(">")[0] for word in words) for extra, words in declared.items()}
    assert names == PACKAGES


def prefix(folder: Path, **files: str) -> str:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", "-").replace("_DOT_", ".")).write_text(text)
    return str(folder)


def test_pipx_is_known_by_its_metadata(tmp_path: Path) -> None:
    """With the name that it gave the environment."""
    found = installed_how(prefix(tmp_path / "laneway-dev", pipx_metadata_DOT_json="{}"))
    assert found.how == "pipx"
    assert found.adding("codex") == "pipx inject laneway-dev openai-codex-cli-bin"
    assert found.adding("codex", upgrade=True) == "pipx runpip laneway-dev install -U openai-codex-cli-bin"
    assert found.adding("chat") == "pipx inject laneway-dev prompt_toolkit rich"
    assert found.removing() == "pipx uninstall laneway-dev"


def test_a_uv_tool_keeps_what_it_was_asked_for(tmp_path: Path) -> None:
    """`uv tool install` removes every package that is not named again."""
    found = installed_how(prefix(tmp_path / "laneway", uv__receipt_DOT_toml=RECEIPT))
    assert (found.how, found.extras, found.beside) == ("uv tool", ("ws",), ("uvicorn",))
    wheel = tmp_path / "a b.whl"
    wheel.write_text("")
    again = msgspec.structs.replace(found, source=str(wheel))
    asked = "--with openai-codex-cli-bin --with uvicorn"
    assert again.adding("codex") == f"uv tool install {asked} '{wheel}[ws]'"
    assert again.adding("codex", upgrade=True) == f"uv tool install -U {asked} '{wheel}[ws]'"
    assert again.removing() == "uv tool uninstall laneway"


def test_a_uv_tool_whose_wheel_is_gone_gets_the_package_all_the_same() -> None:
    """It cannot be named again, but its environment can."""
    found = Installation("uv tool", "/tools/laneway/bin/python", "/gone/laneway.whl")
    assert found.adding("ws") == "uv pip install --python /tools/laneway/bin/python websockets"


@pytest.mark.parametrize(
    "text", ["{ torn", "", "[tool]\nrequirements = 7\n", '[tool]\nrequirements = ["x"]\n']
)
def test_a_receipt_that_cannot_be_read_is_still_one(tmp_path: Path, text: str) -> None:
    """Only what it asked for is unknown then."""
    found = installed_how(prefix(tmp_path / "laneway", uv__receipt_DOT_toml=text))
    assert (found.how, found.extras, found.beside) == ("uv tool", (), ())


@pytest.mark.parametrize(
    ("place", "runner"), [("uv/archive-v0/x", "uvx --from"), ("pipx/.cache/0123", "pipx run --spec")]
)
def test_what_lies_in_a_cache_is_not_installed(tmp_path: Path, place: str, runner: str) -> None:
    """`uvx` and `pipx run`: there is nothing to uninstall, and nothing lasts that is added."""
    found = installed_how(prefix(tmp_path / place, pipx_metadata_DOT_json="{}"))
    assert (found.how, found.removing()) == ("temporary", None)
    named = msgspec.structs.replace(found, source="/w.whl")
    assert named.adding("codex") == f"{runner} '/w.whl[codex]' laneway"
    assert named.staying() == "`uv tool install /w.whl` or `pipx install /w.whl`"


def test_an_environment_of_pip_is_named_by_its_python() -> None:
    """Whatever `pip` is first on PATH; also where the environment has none of its own."""
    found = Installation("pip", "/venv/bin/python")
    assert found.adding("http") == "/venv/bin/python -m pip install uvicorn"
    assert found.removing() == "/venv/bin/python -m pip uninstall laneway"
    bare = Installation("pip", "/venv/bin/python", has_pip=False)
    assert bare.adding("http", upgrade=True) == "python3 -m pip --python /venv/bin/python install -U uvicorn"
    system = Installation("pip", "/usr/bin/python3", is_managed=True)
    assert system.removing() == "/usr/bin/python3 -m pip uninstall --break-system-packages laneway"


def test_a_source_folder_is_not_installed(tmp_path: Path) -> None:
    """As when it is named by PYTHONPATH: another copy may be installed, which is not this one."""
    found = installed_how(prefix(tmp_path / "venv"), package=tmp_path / "src" / "laneway")
    assert (found.how, found.removing()) == ("source", None)


def bare_environment(folder: Path) -> str:
    """An environment without Codex, in which this source runs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (folder / "packages").mkdir()
    source = Path(package.__file__).parent
    for found in (source, Path(msgspec.__file__).parent):
        (folder / "packages" / found.name).symlink_to(found)
    return str(folder / "packages")


def test_whoever_lacks_a_codex_is_told_the_line_that_helps(tmp_path: Path) -> None:
    """The real program, in an environment as pipx makes them."""
    folder = tmp_path / "venvs" / "laneway"
    path = bare_environment(folder)
    (folder / "pipx_metadata.json").write_text("{}")
    ran = subprocess.run(
        [folder / "bin" / "python", "-m", "laneway", "ask", "hi"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 3
    assert ran.stderr == (
        "laneway: No Codex was found: install one with `pipx inject laneway openai-codex-cli-bin`, "
        "put `codex` on PATH, or name it with --codex-bin.\n"
    )


def test_no_text_advises_a_bare_pip() -> None:
    """It would install into whatever environment is first on PATH, and Laneway is on no index."""
    advice = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in sorted((ROOT / "src").rglob("*.py"))
        for line in file.read_text().splitlines()
        if "pip install" in line and file.name != "installed.py"
    ]
    assert advice == []
