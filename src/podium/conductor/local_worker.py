"""`local`: a worker whose model runs in Podium's own process, through the same loop as a local policy.

All answers that are wanted at the same time are written in one batch. The model runs through transformers, or through
the loader of an installed package. To serve a large model to many users, use vLLM and a worker of kind "openai".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from hashlib import file_digest
from typing import Any

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.local_policy import LocalPolicy
from podium.conductor.open import open_policy
from podium.conductor.policy import Sampling
from podium.errors import CheckpointError, ConfigError, UsageError, WorkerError
from podium.text.thoughts import ThoughtSplitter, split_thoughts
from podium.trace import Reply
from podium.types import Message, Price, Profile
from podium.workers.base import LOCAL_MODEL, Request, Worker
from podium.workers.build import BuildContext
from podium.workers.spec import LocalSpec
from podium.workers.view import WorkerView

_MILLION = 1_000_000


class LocalWorker(Worker):
    """A language model of this process.

    Args:
        policy: runs the model.
        profile: Default: that of the spec.
        identity: what the answers depend on. If it is None, answers are not cached.
    """

    traits = LOCAL_MODEL

    def __init__(
        self,
        spec: LocalSpec,
        policy: LocalPolicy,
        *,
        profile: Profile | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile or spec.to_profile()
        self.limits, self.fallback, self.identity = spec.limits, spec.fallback, identity
        self._spec, self._policy = spec, policy
        self._begins_inside_thought = False
        """Whether the chat template opens the thought, as an earlier answer showed."""

    def __repr__(self) -> str:
        return f"LocalWorker({self.profile.name!r}, {self._policy.name!r})"

    async def answer(self, request: Request) -> Reply:
        """Write the answer.

        Raises:
            WorkerError: of kind "protocol" if the messages do not fit into the model's context.
        """
        options = request.options
        sampling = Sampling(
            temperature=self._spec.temperature if options.temperature is None else options.temperature,
            max_tokens=self.limits.answer_tokens(options.max_tokens),
            seed=f"{request.seed}/{request.duplicate_index}",
            stop=options.stop,
        )
        loop, splitter = asyncio.get_running_loop(), ThoughtSplitter(hold=self._begins_inside_thought)
        listeners = (request.on_reasoning, request.on_text)

        def pass_on(pieces: tuple[str, str]) -> None:
            for piece, listener in zip(pieces, listeners, strict=True):
                if piece and listener is not None:
                    listener(piece)

        def show(text: str) -> None:
            with suppress(RuntimeError):  # The loop has ended, and nothing waits for the text.
                loop.call_soon_threadsafe(pass_on, splitter.add(text))

        messages = request.messages
        if self._spec.reads == "view":
            messages = (Message(role="user", content=view_prompt(request.view)),)
        if self._spec.system is not None:
            messages = (Message(role="system", content=self._spec.system), *messages)
        done = self._policy.submit(messages, sampling, None if listeners == (None, None) else show)
        try:
            completion = await asyncio.wrap_future(done)
        except UsageError as error:
            raise WorkerError(str(error), kind="context") from None
        finally:
            done.cancel()
        if listeners == (None, None):
            splitter.add(completion.text)
        pass_on(splitter.end())
        self._begins_inside_thought |= splitter.opened_by_template
        thoughts, text = split_thoughts(completion.text)
        if thoughts and not text.strip() and not (completion.truncated and options.max_tokens):
            raise WorkerError("It thought and wrote no answer; raise limits.max_tokens.", kind="protocol")
        return Reply(
            text,
            completion.usage,
            finish="length" if completion.truncated else "stop",
            model=self._policy.name,
            reasoning=thoughts,
        )


def view_prompt(view: WorkerView) -> str:
    """A worker's view in short lines for a small model: question, earlier work, subtask, and "Response:"."""
    lines = [f"Question: {view.question}"]
    if view.previous is not None:
        lines.append(f"Before: {view.previous}")
    for step in view.earlier:
        lines += [f"Step {step.position}: {step.subtask}", f"Response: {step.response}"]
    return "\n".join([*lines, f"Subtask: {view.subtask}", "Response: "])


def build_local(spec: LocalSpec, context: BuildContext) -> Worker:
    """The worker of a spec.

    Raises:
        ConfigError: the folder is no checkpoint or needs torch, which is not installed; or its parameters cannot be
            counted.
    """
    try:
        checkpoint = Checkpoint.read(context.folder / spec.path)
        policy = open_policy(checkpoint)
    except (CheckpointError, UsageError) as error:
        raise ConfigError(str(error), ("path",)) from None
    profile = spec.to_profile()
    if spec.price_compute:
        if (parameters := checkpoint.parameters()) is None:
            raise ConfigError(
                f"Worker {spec.name!r}: price_compute counts the parameters of one model.safetensors, which "
                f"{checkpoint.path} lacks; set price instead.",
                ("price_compute",),
            )
        price = Price(input=parameters / _MILLION, output=parameters / _MILLION)
        profile = profile.model_copy(update={"price": price})
    identity = {
        "kind": "local",
        "model": _digest(checkpoint),
        "system": spec.system,
        "temperature": spec.temperature,
        "reads": spec.reads,
        "max_tokens": spec.limits.max_tokens,
    }
    return LocalWorker(spec, policy, profile=profile, identity=identity)


def _digest(checkpoint: Checkpoint) -> str:
    digests = []
    read = ("*.safetensors", "tokenizer*.json", "config.json", "generation_config.json", "chat_template*")
    for path in sorted(path for pattern in read for path in checkpoint.path.glob(pattern)):
        with path.open("rb") as file:
            digests.append(f"{path.name}:{file_digest(file, 'sha256').hexdigest()[:16]}")
    return " ".join(digests)
