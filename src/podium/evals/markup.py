"""HTML that escapes all text that it did not build itself, and the self-contained page around it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files

from podium import __version__


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: Html | str | Iterable[Html | str], **attributes: object) -> Html:
    """`<name attributes>children</name>`; strings other than `Html` are escaped.

    An attribute loses its trailing underscore (`class_`), and other underscores become dashes (`stroke_width`). An
    attribute with the value None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{fragment(*children)}</{name}>")


def fragment(*children: Html | str | Iterable[Html | str]) -> Html:
    """The children one after another; strings other than `Html` are escaped."""
    return Html("".join(map(_escaped, children)))


def _escaped(child: Html | str | Iterable[Html | str]) -> str:
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(child)
    return "".join(map(_escaped, child))


def table_row(*cells: Html | str, **attributes: object) -> Html:
    """A row of a table."""
    return tag("tr", (tag("td", cell) for cell in cells), **attributes)


def data_table(headings: Sequence[str], rows: Iterable[Html]) -> Html:
    """A table, which scrolls where the page is too narrow."""
    head = tag("thead", tag("tr", (tag("th", heading) for heading in headings)))
    return tag("div", tag("table", head, tag("tbody", rows)), class_="scroll")


def prose(text: str) -> Html:
    """A text in a cell, which is wrapped as a number is not."""
    return tag("div", text, class_="said")


def html_page(title: str, *body: Html | str | Iterable[Html | str]) -> str:
    """A self-contained page in the style of the report, which ends with the version that wrote it."""
    style = files("podium").joinpath("assets", "report.css").read_text(encoding="utf-8")
    viewport = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    written_by = tag("p", f"Written by podium {__version__}.", class_="note")
    head = tag("head", viewport, tag("title", title), tag("style", Html(style)))
    return f"<!doctype html>\n{tag('html', head, tag('body', *body, written_by), lang='en')}\n"
