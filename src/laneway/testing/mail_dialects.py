"""Models of Claude Code, ATM 0.46 and ATM 1.x as programs that write one inbox.

    python -m laneway.testing.mail_dialects claude|atm|atm1 append INBOX FROM TEXT…
    python -m laneway.testing.mail_dialects claude|atm|atm1 mark INBOX

Written from their rules, flaws included, and not from our code: of `laneway.mail` they use only the
system call that exchanges two names. Prints `sent TEXT` or `failed TEXT` for each; `mark` prints `read
TEXT` for each delivered message. Claude Code removes delivered mail from the file, the others set `read`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from laneway.testing.mail_atm import Atm, Atm1
from laneway.testing.mail_claude import Claude
from laneway.testing.mail_program import Dialect, Failed

__all__ = ["DIALECTS", "Failed"]

DIALECTS: dict[str, Dialect] = {"claude": Claude(), "atm": Atm(), "atm1": Atm1()}


def tell(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    dialect, verb, inbox = DIALECTS[argv[0]], argv[1], Path(argv[2])
    if verb == "mark":
        dialect.mark(inbox, tell)
        return 0
    for text in argv[4:]:
        try:
            dialect.append(inbox, argv[3], text)
            tell(f"sent {text}")
        except Failed as problem:
            tell(f"failed {text} {problem}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
