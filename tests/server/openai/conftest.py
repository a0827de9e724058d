"""The model of the tests of background responses: a real endpoint that counts its calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from background_team import INPUT_TOKENS, Answers
from chat_model import ChatModel, chat_model


@pytest.fixture
def answers() -> Answers:
    """What the model answers, and where it waits."""
    return Answers()


@pytest.fixture
def model(answers: Answers) -> Iterator[ChatModel]:
    """The model."""
    with chat_model(answers) as running:
        running.input_tokens = INPUT_TOKENS
        yield running
