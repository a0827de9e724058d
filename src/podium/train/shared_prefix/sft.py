"""The supervised stage of the engine shared_prefix, which reads the common beginning of a micro-batch's prompts
once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from random import Random

import torch

from podium.conductor.checkpoint import Checkpoint
from podium.errors import PodiumError
from podium.train.engine import EncodedExample, SupervisedJob
from podium.train.objective import mean_over_tokens
from podium.train.settings import TrainSettings
from podium.train.shared_prefix.batch import TrainingRow, micro_batches
from podium.train.shared_prefix.checkpoints import Checkpoints, write_trained
from podium.train.shared_prefix.grpo import open_model, start_problems
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import adamw, completion_logprobs, learning_rate, optimizer_step


def find_problems(settings: TrainSettings, start: Checkpoint | None, ranks: int) -> list[PodiumError]:
    """The reasons why this engine cannot train the run on examples, which lie in its start."""
    return start_problems(settings, start)


def train(job: SupervisedJob) -> None:
    """Train on examples, or continue from the newest checkpoint, and write the trained model."""
    run, settings, recorder = job.run, job.run.settings.sft, job.recorder
    model = open_model(run.start, run.settings)
    optimizer = adamw(model)
    checkpoints = Checkpoints(run.checkpoints, run.start, run.settings.prompt)
    latest = checkpoints.latest()
    done = 0 if latest is None else checkpoints.restore(latest, model, optimizer)
    steps = math.ceil(settings.epochs * len(job.examples) / settings.batch)
    recorder.resume(done)
    while done < steps:
        batch = batch_of(job.examples, done, size=settings.batch, seed=run.settings.seed)
        loss = 0.0
        for first in range(0, len(batch), settings.micro_batch):
            micro = batch[first : first + settings.micro_batch]
            loss += _learn(model, micro, sum(len(example.completion) for example in batch))
            recorder.progress.advance(len(micro), sum(example.length for example in micro))
        rate = learning_rate(done, peak=settings.lr, iterations=steps, warmup=0.0)
        norm = optimizer_step(optimizer, model, rate=rate)
        done += 1
        recorder.record(done, {"loss": loss, "grad_norm": norm, "learning_rate": rate})
        if done % settings.save_every == 0 or done == steps:
            checkpoints.save(model, optimizer, done)
    recorder.progress.phase("saving the policy")
    write_trained(model, run.trained, run.start)


def batch_of(
    examples: Sequence[EncodedExample], number: int, *, size: int, seed: int
) -> list[EncodedExample]:
    """The examples of a step, counted from 0. Each epoch has all examples once, in a new order.

    A batch may span two epochs. Examples of one prompt stay together, so that the prompt is read once. Neighbours have
    about the same length, so that a micro-batch has little padding.
    """
    groups = [list(group) for _, group in groupby(examples, key=lambda example: example.prompt)]
    orders: dict[int, list[EncodedExample]] = {}
    chosen = []
    for index in range(number * size, (number + 1) * size):
        epoch, within = divmod(index, len(examples))
        if epoch not in orders:
            random = Random(f"sft/{seed}/{epoch}")
            order = random.sample(groups, len(groups))
            orders[epoch] = [example for group in order for example in random.sample(group, len(group))]
        chosen.append(orders[epoch][within])
    return sorted(chosen, key=lambda example: (len(example.prompt), example.prompt, example.length))


def _learn(model: PolicyModel, examples: Sequence[EncodedExample], tokens: int) -> float:
    """Add the gradient of the negative log-likelihood of these completions, divided by `tokens`."""
    group = [TrainingRow(example.prompt, example.completion, advantage=1.0) for example in examples]
    (batch,) = micro_batches([group], mean_over_tokens, max_tokens=1)
    learned = batch.token_weights_N.nonzero().flatten()
    mean = (completion_logprobs(model, batch, at=learned) * batch.token_weights_N[learned]).sum()
    loss = -mean * (sum(len(example.completion) for example in examples) / tokens)
    torch.autograd.backward(loss)
    return float(loss.detach())
