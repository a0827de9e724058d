"""HTML and SVG that cannot be forged: text is escaped unless it was made here."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *children: Html | str | Iterable[Html | str], **attributes: object) -> Html:
    """`<name attributes>children</name>`, every string escaped that is not `Html`.

    A trailing underscore of an attribute is dropped (`class_`), others become dashes (`stroke_width`); None
    leaves the attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Html | str | Iterable[Html | str]) -> Html:
    """Children one after another, escaped where they are not `Html`."""
    return Html("".join(map(_written, children)))


def _written(child: Html | str | Iterable[Html | str]) -> str:
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(child)
    return "".join(map(_written, child))
