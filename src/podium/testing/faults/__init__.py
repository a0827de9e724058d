"""Faults of an endpoint, each a frozen value that says what goes wrong and serves it."""

from podium.testing.faults.any import AnyFault
from podium.testing.faults.base import Fault
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
from podium.testing.faults.poison import POISONS, Poison
from podium.testing.faults.refusals import EchoHeaders, RateLimited, Redirect, Status
from podium.testing.faults.silences import Hang, SlowDrip, SlowFirstByte, SlowFirstToken

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
    "Reset",
    "SlowDrip",
    "SlowFirstByte",
    "SlowFirstToken",
    "Status",
    "TruncatedJson",
    "UnfinishedStream",
    "Verbatim",
    "WrongContentType",
    "WrongModel",
    "WrongUsage",
]
