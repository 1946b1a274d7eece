"""Markdown, as far as weft's pages use it, to HTML: headings, lists, tables, code, quotes, links, emphasis."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

Link = Callable[[str], str]


@dataclass
class Page:
    """A page as HTML, with its headings: level, id and text."""

    html: str = ""
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    code: list[tuple[str, str]] = field(default_factory=list)  # of each fenced block: language and text


def slug(text: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def inline(text: str, link: Link = lambda target: target) -> str:
    """Text in a line: code is set aside first, because nothing in it means anything."""
    kept: list[str] = []

    def keep(fragment: str) -> str:
        kept.append(fragment)
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"(`+)(.+?)\1", lambda m: keep(f"<code>{html.escape(m[2].strip(), False)}</code>"), text)
    text = html.escape(text, False)
    text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)",
                  lambda m: keep(f'<img src="{html.escape(link(m[2]))}" alt="{html.escape(m[1])}">'), text)
    text = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", lambda m: keep(f'<a href="{html.escape(link(m[2]))}">') + m[1] + keep("</a>"), text)
    text = re.sub(r"&lt;(https?://[^\s&]+)&gt;|(?<![\w\"])(https?://[^\s<>()]+[^\s<>().,;])",
                  lambda m: keep(f'<a href="{m[1] or m[2]}">{m[1] or m[2]}</a>'), text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*(?!\s)([^*]+?)(?<!\s)\*(?![\w*])", r"<em>\1</em>", text)
    text = text.replace("\\|", "|")
    while "\0" in text:
        text = re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)
    return text


def convert(text: str, link: Link = lambda target: target) -> Page:
    """A page of Markdown."""
    page = Page()
    page.html = "\n".join(_blocks(text.expandtabs(4).splitlines(), link, page))
    return page


_ITEM = re.compile(r"^( *)([-*+]|\d+[.)]) +(.*)$")
_FENCE = re.compile(r"^ *(```+|~~~+) *([\w+-]*)[^`]*$")


def _blocks(lines: list[str], link: Link, page: Page) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif fence := _FENCE.match(line):
            end = next((k for k in range(i + 1, len(lines)) if lines[k].strip() == fence[1]), len(lines))
            code = "\n".join(lines[i + 1:end])
            page.code.append((fence[2], code))
            out.append(f'<pre><code class="language-{fence[2] or "text"}">{html.escape(code, False)}</code></pre>')
            i = end + 1
        elif heading := re.match(r"^(#{1,6}) +(.*?) *#*$", line):
            name = slug(heading[2])
            page.headings.append((len(heading[1]), name, re.sub(r"<[^>]*>", "", inline(heading[2]))))
            out.append(f'<h{len(heading[1])} id="{name}">{inline(heading[2], link)}</h{len(heading[1])}>')
            i += 1
        elif re.match(r"^ {0,3}([-*_] *){3,}$", line) and not _ITEM.match(line):
            out.append("<hr>")
            i += 1
        elif line.startswith("    "):
            end = i
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            code = "\n".join(x[4:] for x in lines[i:end]).rstrip()
            out.append(f"<pre><code>{html.escape(code, False)}</code></pre>")
            i = end
        elif line.startswith(">"):
            end = i
            while end < len(lines) and lines[end].startswith(">"):
                end += 1
            inner = _blocks([re.sub(r"^> ?", "", x) for x in lines[i:end]], link, page)
            out.append("<blockquote>" + "\n".join(inner) + "</blockquote>")
            i = end
        elif "|" in line and i + 1 < len(lines) and re.match(r"^\s*\|?[\s:|-]*-[\s:|-]*$", lines[i + 1]) and "|" in lines[i + 1]:
            end = i + 2
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            out.append(_table(lines[i:end], link))
            i = end
        elif _ITEM.match(line):
            html_of_list, i = _list(lines, i, link, page)
            out.append(html_of_list)
        else:
            end = i + 1
            while end < len(lines) and lines[end].strip() and not _starts_block(lines[end]):
                end += 1
            out.append(f"<p>{inline(' '.join(x.strip() for x in lines[i:end]), link)}</p>")
            i = end
    return out


def _starts_block(line: str) -> bool:
    return bool(re.match(r"^#{1,6} ", line) or _FENCE.match(line) or line.startswith((">", "|"))
                or re.match(r"^([-*+]|1[.)]) +", line))


def cells_of(line: str) -> list[str]:
    """The cells of a row: bars in code or behind a backslash separate nothing."""
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    parts, current, in_code, k = [], "", False, 0
    while k < len(inner):
        c = inner[k]
        if c == "\\" and inner[k + 1:k + 2] == "|":
            current, k = current + "|", k + 1
        elif c == "|" and not in_code:
            parts.append(current.strip())
            current = ""
        else:
            in_code ^= c == "`"
            current += c
        k += 1
    return [*parts, current.strip()]


def _table(lines: list[str], link: Link) -> str:
    def row(line: str, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{inline(c, link)}</{tag}>" for c in cells_of(line)) + "</tr>"

    body = "\n".join(row(line, "td") for line in lines[2:])
    return f"<div class=\"wide\"><table><thead>{row(lines[0], 'th')}</thead><tbody>\n{body}\n</tbody></table></div>"


def _list(lines: list[str], i: int, link: Link, page: Page) -> tuple[str, int]:
    first = _ITEM.match(lines[i])
    assert first
    indent, is_ordered = len(first[1]), first[2][0].isdigit()
    items: list[list[str]] = []
    is_loose = False
    while i < len(lines):
        item = _ITEM.match(lines[i])
        if item and len(item[1]) == indent and item[2][0].isdigit() == is_ordered:
            items.append([item[3]])
            inside = len(lines[i]) - len(item[3])
            i += 1
        elif not lines[i].strip():
            k = i
            while k < len(lines) and not lines[k].strip():
                k += 1
            following = _ITEM.match(lines[k]) if k < len(lines) else None
            deeper = k < len(lines) and len(lines[k]) - len(lines[k].lstrip()) > indent
            if not deeper and not (following and len(following[1]) == indent):
                break
            is_loose |= not deeper
            items[-1] += [""] * (k - i)
            i = k
        elif len(lines[i]) - len(lines[i].lstrip()) > indent or not _starts_block(lines[i]):
            spaces = len(lines[i]) - len(lines[i].lstrip())
            items[-1].append(lines[i][min(spaces, inside):])
            i += 1
        else:
            break
    tag = "ol" if is_ordered else "ul"
    out = []
    for item_lines in items:
        inner = _blocks(item_lines, link, page)
        if not is_loose and inner and inner[0].startswith("<p>"):
            inner[0] = inner[0][3:-4]
        out.append(f"<li>{chr(10).join(inner)}</li>")
    start = f' start="{first[2][:-1]}"' if is_ordered and first[2][:-1] != "1" else ""
    return f"<{tag}{start}>\n" + "\n".join(out) + f"\n</{tag}>", i
