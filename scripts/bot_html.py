"""HTML of conversations as the apps of Telegram and Discord show them, from what the fake services received.

Only for pictures: colours and shapes are close to the apps', and emoji are drawn as small SVGs, so that a
machine without a font of emoji makes the same picture.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from laneway.testing.fake_discord import DiscordMessage
from laneway.testing.fake_telegram import BotApiDraft, BotApiFile, BotApiMessage

_EMOJI = {
    "🔶": '<path d="M10 1 19 10 10 19 1 10z" fill="#f59f2b"/>',
    "🔷": '<path d="M10 1 19 10 10 19 1 10z" fill="#3a9bef"/>',
    "🔧": '<path d="M3 15 10 8a5 5 0 0 1 6-6l-3 3 2 2 3-3a5 5 0 0 1-6 6l-7 7z" fill="#8ea3b5"/>',
    "✏": '<path d="M2 18l1-5L14 2l4 4L7 17z" fill="#f0b43c"/><path d="M2 18l1-5 4 4z" fill="#e8d5b5"/>',
    "💭": '<ellipse cx="10" cy="8" rx="9" ry="6" fill="#cfd8e0"/>'
    '<circle cx="5" cy="16" r="2" fill="#cfd8e0"/>',
    "✅": '<rect x="1" y="1" width="18" height="18" rx="4" fill="#3fb950"/>'
    '<path d="M5 10l4 4 7-8" stroke="#fff" stroke-width="2.4" fill="none"/>',
    "🔄": '<rect x="1" y="1" width="18" height="18" rx="4" fill="#3a8fd8"/>'
    '<path d="M5 9a5 5 0 0 1 9-2m1 4a5 5 0 0 1-9 2" stroke="#fff" stroke-width="2" fill="none"/>',
    "⬜": '<rect x="2" y="2" width="16" height="16" rx="3" fill="#dfe4e9" stroke="#aab4bd"/>',
    "⏳": '<path d="M4 1h12v2l-5 7 5 7v2H4v-2l5-7-5-7z" fill="#d9a441"/>',
    "❓": '<text x="5" y="17" font-size="19" font-weight="bold" fill="#e5534b">?</text>',
    "⏹": '<rect x="1" y="1" width="18" height="18" rx="4" fill="#4f8fce"/>'
    '<rect x="6" y="6" width="8" height="8" fill="#fff"/>',
    "👀": '<ellipse cx="6" cy="10" rx="4.5" ry="7" fill="#fff" stroke="#777"/>'
    '<ellipse cx="14" cy="10" rx="4.5" ry="7" fill="#fff" stroke="#777"/>'
    '<circle cx="7" cy="11" r="2.2" fill="#333"/><circle cx="15" cy="11" r="2.2" fill="#333"/>',
    "✓": '<path d="M3 10l5 5 9-11" stroke="#3fb950" stroke-width="2.6" fill="none"/>',
}
_KNOWN = re.compile("|".join(_EMOJI))
_HIDDEN = "\ufe0f"


def emoji(shown: str) -> str:
    """HTML with its emoji drawn. One that cannot be is a mistake of the picture's script."""
    shown = shown.replace(_HIDDEN, "")
    if missing := {letter for letter in shown if ord(letter) > 0x1F000 and letter not in _EMOJI}:
        raise ValueError(f"draw these emoji, too: {missing}")
    return _KNOWN.sub(lambda found: f'<svg class="e" viewBox="0 0 20 20">{_EMOJI[found[0]]}</svg>', shown)


def _png(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _gallery(pictures: Sequence[bytes]) -> str:
    shown = "".join(f'<img src="{_png(each)}">' for each in pictures)
    return f'<div class="gallery n{len(pictures)}">{shown}</div>'


# ── Telegram ───────────────────────────────────────────────────────────────

_TAGS = {
    "bold": "b",
    "italic": "i",
    "code": "code",
    "pre": "pre",
    "strikethrough": "s",
    "blockquote": "blockquote",
    "bot_command": "u",
}


def entities_html(text: str, entities: Sequence[dict[str, Any]]) -> str:
    """Offsets and lengths count UTF-16 units."""
    encoded = text.encode("utf-16-le")
    opened: dict[int, list[str]] = {}
    closed: dict[int, list[str]] = {}
    for entity in sorted(entities, key=lambda each: -each["length"]):
        tag, begin, end = _TAGS[entity["type"]], entity["offset"], entity["offset"] + entity["length"]
        opened.setdefault(begin, []).append(f"<{tag}>")
        closed.setdefault(end, []).insert(0, f"</{tag}>")
    out, at = "", 0
    for cut in sorted({*opened, *closed, len(encoded) // 2}):
        out += html.escape(encoded[2 * at : 2 * cut].decode("utf-16-le"))
        out += "".join(closed.get(cut, [])) + "".join(opened.get(cut, []))
        at = cut
    return emoji(out.replace("</pre>\n", "</pre>"))


def telegram(
    messages: Sequence[BotApiMessage], files: dict[str, BotApiFile], draft: BotApiDraft | None = None
) -> str:
    rows: list[str] = []
    albums: dict[str, list[BotApiMessage]] = {}
    for message in messages:
        if message.album:
            albums.setdefault(message.album, []).append(message)
            if len(albums[message.album]) > 1:
                continue
        rows.append(f"<!--{message.message_id}-->")
        rows.append(_bubble(message, files, albums))
    for album, parts in albums.items():
        pictures = [files[part.now.file].content for part in parts]
        rows = [row.replace(f"[[{album}]]", _gallery(pictures)) for row in rows]
    if draft is not None:
        now = draft.versions[-1]
        rows.append(f'<div class="bubble bot draft">{entities_html(now.text, now.entities)}</div>')
    stop = '<span class="stop">■ Stop</span>' if draft is not None and draft.can_stop else ""
    field = f'<div class="field"><span>Message</span>{stop}</div>'
    return _page("telegram", f'<div class="head">Laneway <small>bot</small></div>{"".join(rows)}{field}')


def _bubble(
    message: BotApiMessage, files: dict[str, BotApiFile], albums: dict[str, list[BotApiMessage]]
) -> str:
    now = message.now
    who = "bot" if message.sender.is_bot else "me"
    inner = ""
    if message.album:
        inner += f"[[{message.album}]]"
    elif now.file and now.is_photo:
        inner += _gallery([files[now.file].content])
    inner += entities_html(now.text, now.entities)
    if message.reactions:
        inner += f'<span class="reaction">{emoji(message.reactions[-1])}</span>'
    buttons = "".join(
        '<div class="row">'
        + "".join(f'<span class="{each.get("style", "")}">{_label(each["text"])}</span>' for each in row)
        + "</div>"
        for row in now.keyboard
    )
    return f'<div class="bubble {who}">{inner}</div><div class="buttons">{buttons}</div>'


def _label(text: str) -> str:
    return emoji(html.escape(text))


# ── Discord ────────────────────────────────────────────────────────────────

_MARKDOWN = MarkdownIt("commonmark", {"breaks": True, "html": False}).enable("strikethrough")
_MENTION = re.compile(r"&lt;@!?\d+&gt;")


def discord(messages: Sequence[DiscordMessage], name: str, dialog: dict[str, Any] | None = None) -> str:
    rows, last = [], ""
    for message in messages:
        author = "Laneway" if message.author.is_bot else message.author.name
        rows.append(_entry(message, author, is_first=author != last))
        last = author
    shown = _modal(dialog) if dialog is not None else ""
    head = f'<div class="head"># {html.escape(name)}</div>'
    return _page("discord", f"{head}{''.join(rows)}{shown}", has_dialog=dialog is not None)


def _entry(message: DiscordMessage, author: str, *, is_first: bool) -> str:
    words = _MENTION.sub('<span class="mention">@Laneway</span>', _MARKDOWN.render(message.content))
    inner = emoji(words)
    if message.files:
        inner += _gallery([file.data for file in message.files])
    for row in message.components:
        inner += '<div class="row">' + "".join(
            f'<span class="s{each["style"]}">{_label(each["label"])}</span>' for each in row["components"]
        )
        inner += "</div>"
    for sign, users in message.reactions.items():
        inner += f'<span class="reaction">{emoji(sign)} {len(users)}</span>' if users else ""
    tag = ' <span class="app">APP</span>' if message.author.is_bot else ""
    head = (
        f'<div class="who"><i class="{author}">{author[0]}</i><b>{author}</b>{tag}</div>' if is_first else ""
    )
    return f'<div class="entry">{head}<div class="said">{inner}</div></div>'


def _modal(dialog: dict[str, Any]) -> str:
    fields = ""
    for part in dialog["components"]:
        label = html.escape(part.get("label", ""))
        kind = "choose" if part["component"]["type"] == 3 else "long"
        hint = html.escape(part.get("description", ""))
        options = part["component"].get("options") or []
        shown = html.escape(options[0]["label"]) + " ▾" if options else ""
        fields += f'<label>{label}</label><small>{hint}</small><div class="{kind}">{shown}</div>'
    title = html.escape(dialog["title"])
    return (
        f'<div class="shade"></div><div class="modal"><h3>{title}</h3>{fields}'
        '<div class="send"><span>Cancel</span><span class="go">Submit</span></div></div>'
    )


# ── pages ──────────────────────────────────────────────────────────────────


def _page(service: str, body: str, *, has_dialog: bool = False) -> str:
    css = (Path(__file__).parent / f"{service}.css").read_text()
    kind = "asked" if has_dialog else ""
    return f"<!doctype html><meta charset=utf-8><style>{css}</style><body class={kind!r}>{body}</body>"
