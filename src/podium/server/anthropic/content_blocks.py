"""The content blocks of Anthropic's messages, and the parts of them that workers read.

Workers read texts and images. A block of a type that only Anthropic's servers and clients know becomes text. A file
that no worker can read becomes a note that it is there. Clients send the blocks of a conversation again with each
request, so a refusal would end the conversation. `messages_body` has the blocks of tools and thoughts.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Discriminator, Field, StringConstraints, Tag

from podium.server.question_body import ContentPart, TextPart, images_of, text_of
from podium.server.requests import BodyPart, ListOf


def known_or_other(*known: type[BodyPart]) -> Discriminator:
    """The discriminator of parts that are of a type of these models, tagged "known", or of another, tagged "other"."""
    types = {name for model in known for name in get_args(model.model_fields["type"].annotation)}

    def kind(part: Any) -> str:
        name = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
        return "known" if name in types else "other"

    return Discriminator(kind)


class Text(TextPart):
    type: Literal["text"]
    citations: Any = None


class Base64Source(BodyPart):
    type: Literal["base64"]
    media_type: Annotated[str, StringConstraints(pattern=r"^image/[\w.+-]+$")]
    data: str

    @property
    def address(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


class UrlSource(BodyPart):
    type: Literal["url"]
    url: Annotated[str, StringConstraints(pattern=r"^https?://")]

    @property
    def address(self) -> str:
        return self.url


class UnreadSource(BodyPart):
    """Contents that no worker can read: a PDF, or a file that is stored at Anthropic."""

    is_ignored: ClassVar[bool] = True

    type: str
    media_type: str = ""
    address: ClassVar[None] = None


class Image(ContentPart):
    type: Literal["image"]
    source: Annotated[
        Annotated[Base64Source | UrlSource, Field(discriminator="type"), Tag("known")]
        | Annotated[UnreadSource, Tag("other")],
        known_or_other(Base64Source, UrlSource),
    ]

    @property
    def words(self) -> str:
        return "" if self.images else "[An image that cannot be read here.]"

    @property
    def images(self) -> tuple[str, ...]:
        return () if self.source.address is None else (self.source.address,)


class TextSource(BodyPart):
    type: Literal["text"]
    media_type: str = "text/plain"
    data: str

    @property
    def content(self) -> str:
        return self.data


class ContentSource(BodyPart):
    type: Literal["content"]
    content: str | ListOf[Annotated[Text | Image, Field(discriminator="type")]]


class DocumentBlock(ContentPart):
    type: Literal["document"]
    source: Annotated[
        Annotated[TextSource | ContentSource, Field(discriminator="type"), Tag("known")]
        | Annotated[UnreadSource, Tag("other")],
        known_or_other(TextSource, ContentSource),
    ]
    title: str | None = None
    context: str | None = None

    @property
    def words(self) -> str:
        head = " ".join(filter(None, ("Document", self.title, self.context)))
        if isinstance(self.source, UnreadSource):
            return f"[{head}: {self.source.media_type or self.source.type}, which cannot be read here.]"
        return f"{head}:\n{text_of(self.source.content)}"

    @property
    def images(self) -> tuple[str, ...]:
        return () if isinstance(self.source, UnreadSource) else images_of(self.source.content)


class SearchResult(ContentPart):
    type: Literal["search_result"]
    source: str = ""
    title: str = ""
    content: str | ListOf[Text] = ""

    @property
    def words(self) -> str:
        return f"Search result {self.title} ({self.source}):\n{text_of(self.content)}"


class OtherBlock(ContentPart):
    """A block of a type that only Anthropic's servers and clients know. Workers read its fields as text."""

    has_any_field: ClassVar[bool] = True

    type: str

    @property
    def words(self) -> str:
        """The block's type, and as JSON the fields that a model can use. It is "" if there are none."""
        fields = {} if self.type in _FOR_SERVERS else _readable_fields(self.model_extra)
        return f"[{self.type}] {json.dumps(fields, ensure_ascii=False)}" if fields else ""


ResultPart = Annotated[
    Annotated[Text | Image | DocumentBlock | SearchResult, Field(discriminator="type"), Tag("known")]
    | Annotated[OtherBlock, Tag("other")],
    known_or_other(Text, Image, DocumentBlock, SearchResult),
]
_FOR_SERVERS = ("fallback", "mcp_tool_listing")
"""Types of blocks that Anthropic does not show to its models either."""
_UNREADABLE = frozenset(
    {"type", "id", "tool_use_id", "cache_control", "citations", "caller", "signature", "page_age"}
)
"""Fields of a block that a model cannot use, besides encrypted fields and bytes."""


def _readable_fields(value: Any) -> Any:
    """The fields of a block that a model can read, without empty ones."""
    if isinstance(value, dict):
        bytes_ = ("data",) if value.get("type") == "base64" else ()
        fields = {
            key: _readable_fields(item)
            for key, item in value.items()
            if key not in _UNREADABLE and key not in bytes_ and not key.startswith("encrypted")
        }
        return {key: item for key, item in fields.items() if item not in (None, "", [], {})}
    if isinstance(value, list):
        return [item for item in map(_readable_fields, value) if item not in (None, "", [], {})]
    return value
