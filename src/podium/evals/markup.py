"""Builds HTML in which all text is escaped, and the self-contained page around it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files

from podium import __version__


class SafeHtml(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: SafeHtml | str | Iterable[SafeHtml | str], **attributes: object) -> SafeHtml:
    """`<name attributes>children</name>`. Strings other than `SafeHtml` are escaped.

    An attribute loses its trailing underscore (`class_`), and other underscores become dashes (`stroke_width`). An
    attribute with the value None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return SafeHtml(f"<{name}{written}>{fragment(*children)}</{name}>")


def fragment(*children: SafeHtml | str | Iterable[SafeHtml | str]) -> SafeHtml:
    """The children one after another. Strings other than `SafeHtml` are escaped."""
    return SafeHtml("".join(map(_escaped, children)))


def _escaped(child: SafeHtml | str | Iterable[SafeHtml | str]) -> str:
    if isinstance(child, SafeHtml):
        return child
    if isinstance(child, str):
        return html.escape(child)
    return "".join(map(_escaped, child))


def table_row(*cells: SafeHtml | str, **attributes: object) -> SafeHtml:
    return tag("tr", (tag("td", cell) for cell in cells), **attributes)


def data_table(headings: Sequence[str], rows: Iterable[SafeHtml]) -> SafeHtml:
    """A table, which scrolls if the page is too narrow."""
    head = tag("thead", tag("tr", (tag("th", heading) for heading in headings)))
    return tag("div", tag("table", head, tag("tbody", rows)), class_="scroll")


def prose(text: str) -> SafeHtml:
    """A text in a cell. Unlike a number, it is wrapped."""
    return tag("div", text, class_="said")


def html_page(title: str, *body: SafeHtml | str | Iterable[SafeHtml | str]) -> str:
    """A self-contained page in the style of the report, which ends with the version that wrote it."""
    style = files("podium").joinpath("assets", "report.css").read_text(encoding="utf-8")
    viewport = SafeHtml(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    written_by = tag("p", f"Written by podium {__version__}.", class_="note")
    head = tag("head", viewport, tag("title", title), tag("style", SafeHtml(style)))
    return f"<!doctype html>\n{tag('html', head, tag('body', *body, written_by), lang='en')}\n"
