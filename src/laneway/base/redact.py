"""Removes secrets from texts: for logs, the audit log, errors and bug reports.

Recognises secrets by their shape (keys of well-known services, bearer headers, private keys,
passwords in URLs), by their name (`…_TOKEN=`, `"api_key":`) and by their place (environments and
HTTP headers in a configuration). Errs on the side of hiding: a lost word in a log is cheap. Pure,
linear in the length of the text.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"

_SHAPES = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{12,}                                   # OpenAI, Anthropic
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}       # GitHub
    | \bglpat-[\w-]{16,}                                        # GitLab
    | \bxox[abeoprs]-[\w-]{10,}                                 # Slack
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b                             # AWS
    | \bAIza[\w-]{30,}                                          # Google
    | \bnpm_[A-Za-z0-9]{30,} | \bpypi-[\w-]{40,} | \bhf_[A-Za-z0-9]{30,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?                    # JSON web tokens
    | \b\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])                     # Telegram bots
    | \b[A-Za-z0-9_-]{24,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}  # Discord bots
    """,
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?|(?:bearer|basic)\s+)(?:(?:bearer|basic|token)\s+)?[^\s\"',;]{6,}"
)
_IN_URL = re.compile(r"(?<=://)([^\s/:@]{1,256}):[^\s/@]{1,256}@")
_NAME = (
    r"[\w.-]{0,64}(?:token|secret|passwd|password|passphrase|api[_-]?key|private[_-]?key|access[_-]?key"
    r"|credentials?|cookie|session[_-]?key|auth[_-]?key)"
)
_PAIR = re.compile(
    rf"(?i)(?P<name>(?<![\w.-])(?P<quote>[\"']?){_NAME}(?P=quote)\s{{0,4}}(?:=>|[:=])\s{{0,4}})"
    r"(?P<value>\"(?:[^\"\\]|\\.){1,65536}\"|'[^'\n]{1,65536}'|[^\s\"',;}\])&]{1,65536})"
)
_TABLE = re.compile(
    r"""(\b(?:env|http_headers)"\s{0,4}:\s{0,4}\{)"""
    r"""(?:"(?:[^"\\]|\\.){0,65536}(?:"|\\?\Z)|[^"{}]){1,65536}(?:\}|\Z)"""
)


def redact(text: str) -> str:
    """The text without anything that looks like a secret."""
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _TABLE.sub(lambda match: f"{match[1]}{HIDDEN}}}", text)
    text = _HEADER.sub(lambda match: match[1] + HIDDEN, text)
    text = _PAIR.sub(_hide_value, text)
    text = _IN_URL.sub(rf"\1:{HIDDEN}@", text)
    return _SHAPES.sub(HIDDEN, text)


def _hide_value(match: re.Match[str]) -> str:
    value = match["value"]
    if value.lower() in ("null", "none", "true", "false", '""', "''") or HIDDEN in value:
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match['name']}{quote}{HIDDEN}{quote}"
