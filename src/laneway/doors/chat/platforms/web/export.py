"""One conversation as a single HTML file: no script, nothing loaded from elsewhere, readable anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from laneway.doors.chat.platforms.web.markdown_tree import tree_html

STYLE_FILE = Path(__file__).with_name("export.css")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_HOW = {
    "answered": "answered",
    "declined": "declined",
    "expired": "nobody answered in time",
    "withdrawn": "not needed any more",
    "void": "not answered: Laneway ended",
}


def export_html(record: dict[str, Any], items: Sequence[dict[str, Any]]) -> str:
    """`items` as `item_json` makes them."""
    body = "\n".join(filter(None, (_item(item) for item in _as_it_ended(items))))
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(record["created_at"]))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(record['title'])}</title><style>{STYLE_FILE.read_text()}</style></head><body>\n"
        f"<h1>{escape(record['title'])}</h1>\n"
        f'<p class="meta">{escape(record["cwd"])} · begun {began}</p>\n{body}\n</body></html>\n'
    )


def _as_it_ended(items: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Activities and plans once, where they began, as they ended."""
    latest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for item in items:
        if item["kind"] in ("activity", "plan"):
            latest[_key(item)] = item
    told = set()
    for item in items:
        if item["kind"] not in ("activity", "plan"):
            yield item
        elif _key(item) not in told:
            told.add(_key(item))
            yield latest[_key(item)]


def _key(item: dict[str, Any]) -> tuple[str, str, str]:
    return item["kind"], item["ticket"], item.get("item", "")


def _item(item: dict[str, Any]) -> str:
    match item["kind"]:
        case "said":
            who = f"{item['sender']} ({item['platform']})"
            pictures = f" [{item['images']} images]" if item["images"] else ""
            return (
                f'<p class="meta">{escape(who)}</p><div class="said">{escape(item["text"])}{pictures}</div>'
            )
        case "text":
            return f'<p class="meta">{escape(item["lane"])}</p>{tree_html(item["tree"])}'
        case "thought":
            return _folded(f"{item['lane']} thinks", tree_html(item["tree"]))
        case "turn_began" if item["banner"]:
            return f'<p class="banner">{escape(item["lane"])} begins: {escape(item["task"])}</p>'
        case "turn_ended":
            return _turn_ended(item)
        case "activity":
            return _activity(item)
        case "plan":
            marks = {"completed": "☑", "running": "▶", "pending": "☐"}
            steps = "".join(
                f"<li>{marks.get(step['status'], '☐')} {escape(step['text'])}</li>" for step in item["steps"]
            )
            return f'<p class="meta">{escape(item["lane"])}: plan</p><ul>{steps}</ul>'
        case "question":
            asks = f"{item['lane']} asks (#{item['number']}): {item['title']}"
            return (
                f'<p class="banner">{escape(asks)}</p>{tree_html(item["explanation"])}{_diffs(item["diffs"])}'
            )
        case "question_over":
            by = f" by {item['by']}" if item["by"] else ""
            how = f"#{item['number']} {_HOW.get(item['how'], item['how'])}{by}: {item['text']}"
            return f'<p class="meta">{escape(how.rstrip(": "))}</p>'
        case "told":
            return f'<div class="meta">{tree_html(item["tree"])}</div>'
        case "file":
            sent = f"{item['lane']} sent the file {item['name']} {item['caption']}"
            return f'<p class="meta">{escape(sent)}</p>'
        case _:
            return ""


def _activity(item: dict[str, Any]) -> str:
    body = _diffs(item["diffs"]) + tree_html(item["input"])
    if item["output"]:
        body += f"<pre>{escape(item['output'])}</pre>"
    title = f"{item['lane']}::{item['title']} {item['outcome']}"
    return _folded(title, body) if body else f'<p class="meta">{escape(title)}</p>'


def _turn_ended(item: dict[str, Any]) -> str:
    words = item["failure"] or ("" if item["status"] == "completed" else item["status"])
    if not item["banner"] and not words:
        return ""
    return f'<p class="banner">{escape(item["lane"])} {escape(item["status"])} {escape(item["failure"])}</p>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title.strip())}</summary>{body}</details>"


def _diffs(diffs: Sequence[dict[str, Any]]) -> str:
    return "".join(f"<p>{escape(diff['path'])}</p>{_diff(diff['rows'])}" for diff in diffs)


def _diff(rows: Sequence[Any]) -> str:
    lines = []
    for sign, _, old, _, new in rows:
        left = ' class="del"' if sign in "-~" else ""
        right = ' class="add"' if sign in "+~" else ""
        lines.append(f"<tr><td{left}>{escape(old)}</td><td{right}>{escape(new)}</td></tr>")
    return f'<table class="diff">{"".join(lines)}</table>'
