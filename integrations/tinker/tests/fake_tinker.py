"""Stands in for Tinker's service, which only its own machines offer: samples what a function writes, and keeps data.

It has the calls of tinker 0.38 that the cookbook's training loop makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import tinker
from tinker.types import SampledSequence, SampleResponse
from transformers import PreTrainedTokenizerBase

Writer = Callable[[str], str]
"""From the prompt's text to the completion's."""


@dataclass
class FakeSamplingClient:
    tokenizer: PreTrainedTokenizerBase
    write: Writer
    prompts: list[str] = field(default_factory=list)

    async def sample(
        self, prompt: tinker.ModelInput, num_samples: int, sampling_params: tinker.SamplingParams
    ) -> SampleResponse:
        text = self.tokenizer.decode(prompt.to_ints())
        self.prompts.append(text)
        tokens = self.tokenizer.encode(self.write(text), add_special_tokens=False)
        tokens.append(self.tokenizer.eos_token_id)
        sequence = SampledSequence(
            stop_reason="stop",
            sequence_id=f"sequence-{len(self.prompts)}",
            _tokens_list=tokens,
            _logprobs_list=[-1.0] * len(tokens),
        )
        return SampleResponse(sequences=[sequence])


@dataclass
class Done:
    """A future whose result is there."""

    value: Any

    def __await__(self) -> Iterator[Any]:
        return self.value
        yield

    def result(self) -> Any:
        return self.value


@dataclass
class FakeTrainingClient:
    sampling: FakeSamplingClient
    batches: list[list[tinker.Datum]] = field(default_factory=list)
    updates: int = 0

    def forward_backward(self, data: list[tinker.Datum], **_: Any) -> Done:
        self.batches.append(data)
        outputs = [{"logprobs": datum.loss_fn_inputs["logprobs"]} for datum in data]
        return Done(
            tinker.ForwardBackwardOutput(loss_fn_output_type="TorchLossReturn", loss_fn_outputs=outputs)
        )

    def optim_step(self, parameters: tinker.AdamParams) -> Done:
        self.updates += 1
        return Done(tinker.OptimStepResponse())

    def save_state(self, name: str, **_: Any) -> Done:
        return Done(SimpleNamespace(path=f"tinker://fake/{name}"))

    def save_weights_for_sampler(self, name: str, **_: Any) -> Done:
        return Done(SimpleNamespace(path=f"tinker://fake/{name}"))

    def save_weights_and_get_sampling_client(self, **_: Any) -> Done:
        return Done(self.sampling)

    def create_sampling_client(self, path: str, **_: Any) -> Done:
        return Done(self.sampling)


@dataclass
class FakeServiceClient:
    training: FakeTrainingClient

    @contextmanager
    def open(self, **_: Any) -> Iterator[FakeServiceClient]:
        """In place of `tinker.ServiceClient(...)`."""
        yield self

    def create_lora_training_client(self, model_name: str, **_: Any) -> Done:
        return Done(self.training)
