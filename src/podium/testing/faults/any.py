"""Every fault, told apart by its kind: what a rule, and so a file, may name."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from podium.testing.faults.cuts import HangUp, Reset, TruncatedJson, UnfinishedStream
from podium.testing.faults.distortions import (
    BadCompression,
    DeepJson,
    GiantBody,
    InvalidUtf8,
    Verbatim,
    WrongContentType,
)
from podium.testing.faults.oddities import (
    ContentFilter,
    EmptyChoices,
    ErrorInside,
    Length,
    MissingUsage,
    NullContent,
    OddEvents,
    WrongModel,
    WrongUsage,
)
from podium.testing.faults.poison import Poison
from podium.testing.faults.refusals import EchoHeaders, RateLimited, Redirect, Status
from podium.testing.faults.silences import Hang, SlowDrip, SlowFirstByte, SlowFirstToken


def _from_word(given: Any) -> Any:
    return {"kind": given} if isinstance(given, str) else given


AnyFault: TypeAlias = Annotated[
    Annotated[
        BadCompression
        | ContentFilter
        | DeepJson
        | EchoHeaders
        | EmptyChoices
        | ErrorInside
        | GiantBody
        | Hang
        | HangUp
        | InvalidUtf8
        | Length
        | MissingUsage
        | NullContent
        | OddEvents
        | Poison
        | RateLimited
        | Redirect
        | Reset
        | SlowDrip
        | SlowFirstByte
        | SlowFirstToken
        | Status
        | TruncatedJson
        | UnfinishedStream
        | Verbatim
        | WrongContentType
        | WrongModel
        | WrongUsage,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_from_word),
]
"""In a file: `{ kind = "status", code = 503 }`, or the kind alone where it needs nothing else."""
