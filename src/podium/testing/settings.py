"""A fault server as a TOML file describes it. What each setting does, the server says."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from podium.config import Settings
from podium.testing.answer import Answer, echo
from podium.testing.rule import Rule
from podium.testing.server import FaultServer


class AnswerSettings(Settings):
    """What one model says; its fields are those of `Answer`."""

    text: str
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    finish_reason: str = "stop"
    model: str | None = None
    reasoning: str = ""
    reasoning_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)


def _from_text(given: Any) -> Any:
    return {"text": given} if isinstance(given, str) else given


class ServerSettings(Settings):
    """Everything that a file can say of a server."""

    answer: str | None = None
    """None: the beginning of what was said last."""
    models: dict[str, Annotated[AnswerSettings, BeforeValidator(_from_text)]] | None = None
    """Name -> answer, or its text alone."""
    rule: tuple[Rule, ...] = ()
    keys: tuple[str, ...] | None = None
    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)
    minute: float = Field(default=60.0, gt=0)
    seed: str = "faults"
    tls: bool = False
    port: int = Field(default=0, ge=0, le=65535)

    def to_server(self) -> FaultServer:
        """The server, not started."""
        return FaultServer(
            echo if self.answer is None else self.answer,
            models=self.models and {name: Answer(**said.model_dump()) for name, said in self.models.items()},
            rules=self.rule,
            keys=self.keys,
            rpm=self.rpm,
            tpm=self.tpm,
            minute=self.minute,
            seed=self.seed,
            tls=self.tls,
            port=self.port,
        )
