"""Faults of an endpoint: each is a frozen value that says what goes wrong, and serves a request in this way.

    refusals       statuses other than 200          interruptions  slow, hanging and cut replies
    malformed      bytes that are not their form    wrong_content  well-formed replies that say something wrong
    strictness     refusals of some requests alone

`AnyFault` is the type of a rule's fault, in Python and in a file.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from podium_testing.exchange import Fault
from podium_testing.faults.interruptions import (
    Hang,
    HangUp,
    Reset,
    SlowDrip,
    SlowFirstByte,
    SlowFirstToken,
    TruncatedJson,
    UnfinishedStream,
)
from podium_testing.faults.malformed import (
    BadCompression,
    DeepJson,
    GiantBody,
    InvalidUtf8,
    Verbatim,
    WrongContentType,
)
from podium_testing.faults.refusals import EchoHeaders, RateLimited, Redirect, Status
from podium_testing.faults.strictness import RefusedParameters, StrictTemplate
from podium_testing.faults.wrong_content import (
    POISONS,
    ContentFilter,
    EmptyChoices,
    ErrorInside,
    Length,
    MissingUsage,
    NullContent,
    OddEvents,
    Poison,
    WrongFormat,
    WrongModel,
    WrongUsage,
)


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
        | RefusedParameters
        | Reset
        | SlowDrip
        | SlowFirstByte
        | SlowFirstToken
        | Status
        | StrictTemplate
        | TruncatedJson
        | UnfinishedStream
        | Verbatim
        | WrongContentType
        | WrongFormat
        | WrongModel
        | WrongUsage,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_from_word),
]
"""In a file: `{ kind = "status", code = 503 }`, or the kind alone if the fault needs no other setting."""

__all__ = [
    "POISONS",
    "AnyFault",
    "BadCompression",
    "ContentFilter",
    "DeepJson",
    "EchoHeaders",
    "EmptyChoices",
    "ErrorInside",
    "Fault",
    "GiantBody",
    "Hang",
    "HangUp",
    "InvalidUtf8",
    "Length",
    "MissingUsage",
    "NullContent",
    "OddEvents",
    "Poison",
    "RateLimited",
    "Redirect",
    "RefusedParameters",
    "Reset",
    "SlowDrip",
    "SlowFirstByte",
    "SlowFirstToken",
    "Status",
    "StrictTemplate",
    "TruncatedJson",
    "UnfinishedStream",
    "Verbatim",
    "WrongContentType",
    "WrongFormat",
    "WrongModel",
    "WrongUsage",
]
