"""Where others can write to a conversation, a repository cannot have Codex ask less than its user wants."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.codex.repo_approvals import policy_against

NEVER = 'approval_policy = "never"\n'


def against(tmp_path: Path, own: str, repository: str, *, within: str = "") -> str | None:
    home, repo = tmp_path / "codex", tmp_path / "repo"
    for folder, text in ((home, own), (repo / ".codex", repository)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)
    (repo / ".git").mkdir(exist_ok=True)
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    cwd = repo / within
    cwd.mkdir(parents=True, exist_ok=True)
    return policy_against(str(cwd), str(home), system_file=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("own", "repository", "expected"),
    [
        ("", "", None),
        ("", 'approval_policy = "untrusted"\n', None),
        ("", NEVER, "on-request"),
        ('approval_policy = "on-request"\n', NEVER, "on-request"),
        ('approval_policy = "untrusted"\n', NEVER, "untrusted"),
        (NEVER, NEVER, None),
        (NEVER, "", None),
        ('profile = "wild"\n[profiles.wild]\napproval_policy = "never"\n', NEVER, None),
        ('profile = "calm"\n[profiles.calm]\nmodel = "x"\n', NEVER, "on-request"),
        ("", 'profile = "wild"\n', "on-request"),
        ("", "[approval_policy.granular]\nrules = true\n", "on-request"),
        ("", "approval_policy = \n", "on-request"),
    ],
)
def test_only_the_users_own_word_keeps_codex_from_asking(
    tmp_path: Path, own: str, repository: str, expected: str | None
) -> None:
    assert against(tmp_path, own, repository) == expected


def test_every_level_of_the_repository_counts(tmp_path: Path) -> None:
    assert against(tmp_path, "", NEVER, within="a/b") == "on-request"
