"""Opens the Conductor that a user names: a checkpoint, a worker of the pool, or any model behind an endpoint.

`ConductorSettings` describes the Conductor. This module decides how a checkpoint is loaded, how a model is prompted,
and whether it may try twice. `podium.team.opened_planner` chooses the Conductor if the user names none.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.conductor.checkpoint import Checkpoint, PlanLimits, TrainingScope
from podium.conductor.conductor import Conductor
from podium.conductor.loaded_model import INSTALLED_LOADERS, LoadedModel, open_guide
from podium.conductor.plan_format import FormatNegotiator, endpoint_of
from podium.conductor.policy import Sampling, WorkerPolicy
from podium.conductor.settings import MAX_PLAN_TOKENS, ConductorSettings
from podium.errors import CheckpointError, ConfigError, UsageError
from podium.types import Price
from podium.workers.base import Worker
from podium.workers.build import BuildContext, build_worker
from podium.workers.pool import Pool
from podium.workers.spec import OpenAISpec

if TYPE_CHECKING:
    from podium.conductor.local_policy import LocalPolicy

_REMEDY = (
    'Let a model conduct untrained: name one in the team file, as in [conductor] with worker = "NAME", or leave '
    "the Conductor out."
)


def open_conductor(checkpoint: Checkpoint, pool: Pool, *, cost_sensitivity: float | None = None) -> Conductor:
    """The Conductor of a checkpoint, for the workers of `pool`. If its podium.json does not say how plans are sampled,
    they are sampled greedily, with as many tokens as the prompt style needs.

    Args:
        cost_sensitivity: a level that the policy was trained with, or a value between two levels. Default: the level of
            its prompt settings.

    Raises:
        CheckpointError: the checkpoint must not conduct this pool, or its files do not belong together.
        UsageError: the policy does not know this level, or it needs torch, which is not installed.
    """
    refuse_misfit(str(checkpoint.path), checkpoint.scope, pool)
    prompt, plan = checkpoint.prompt, checkpoint.plan or PlanLimits()
    if cost_sensitivity is not None and not 0 <= cost_sensitivity <= prompt.levels - 1:
        known = f"levels 0 to {prompt.levels - 1}" if prompt.levels else "no levels of cost sensitivity"
        raise UsageError(f"cost_sensitivity {cost_sensitivity:g}: {checkpoint.path} knows {known}.")
    max_tokens = plan.max_plan_tokens or (MAX_PLAN_TOKENS if prompt.style == "full" else None)
    return Conductor(
        open_policy(checkpoint),
        prompt,
        cost_sensitivity=cost_sensitivity,
        second_try=True,
        sampling=Sampling(temperature=plan.temperature, max_tokens=max_tokens),
        name=f"conductor:{checkpoint.name}",
    )


def refuse_misfit(name: str, scope: TrainingScope, pool: Pool) -> None:
    """Refuse a policy for a pool that it was not trained to conduct.

    Raises:
        CheckpointError: the pool does not fit. The message says why, and what to do.
    """
    misfit = scope.misfit(pool)
    if misfit is not None:
        raise CheckpointError(f"{name} cannot lead this pool: {misfit} {_REMEDY}")


def build_endpoint(settings: ConductorSettings, pool: Pool) -> Worker:
    """The endpoint of a `[conductor]` table, as a worker outside the pool. The caller closes it.

    The pool's secrets are removed from the endpoint's replies too, since one endpoint may repeat what another endpoint
    was sent.

    Raises:
        ConfigError: the endpoint's key is not in the environment, or its URL is not valid.
    """
    keys = ("model", "base_url", "api_key_env", "limits", "temperature", "max_tokens_key", "extra")
    fields = {key: getattr(settings, key) for key in keys}
    spec = OpenAISpec(kind="openai", name=settings.model or "", price=settings.price or Price(), **fields)
    try:
        return build_worker(spec, BuildContext(pool.secrets))
    except ConfigError as error:
        message = str(error).replace(f"Worker {spec.name!r}", "The Conductor")
        raise ConfigError(message, ("conductor", *error.where)) from None


def make_worker_conductor(worker: Worker, settings: ConductorSettings) -> Conductor:
    """A Conductor whose plans a worker writes. The caller closes the worker.

    If `settings` name a podium.json, the policy is prompted exactly as in its training. An untrained model's prompt
    names the caller's tools, and an untrained model behind an endpoint is asked for a structured plan, unless
    `settings` say otherwise.
    """
    prompt, negotiator = settings.prompt, None
    if settings.podium_file is None:
        update: dict[str, Any] = {} if prompt.tools is not None else {"tools": True}
        if settings.plans != "text" and endpoint_of(worker) is not None and prompt.style != "brief":
            negotiator = FormatNegotiator(worker, settings.plans)
            update["form"] = "structured"
        prompt = prompt.model_copy(update=update)
    policy = WorkerPolicy(worker, negotiator=negotiator)
    return Conductor(policy, prompt, second_try=True, name=f"conductor:{policy.name}")


def open_policy(source: str | Path | Checkpoint) -> LocalPolicy:
    """Load the policy of a checkpoint folder, or of the shipped checkpoint of that name, in this process.

    An installed loader for such checkpoints loads it. If there is none, transformers loads it.

    Raises:
        CheckpointError: the folder is not a checkpoint, or its files do not belong together.
        UsageError: the checkpoint needs torch, which is not installed."""
    checkpoint = source if isinstance(source, Checkpoint) else Checkpoint.read(source)
    # OpenBLAS reads this when NumPy is first imported. Its threads spin while they wait: on two cores with another
    # busy process, reading 200 tokens and writing 60 takes 0.12 s on one thread, and took 1.6 s by default.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from podium.conductor.local_policy import LocalPolicy  # noqa: PLC0415

    fitting = (loader.load for _, loader in INSTALLED_LOADERS.items() if loader.loads(checkpoint))
    model = next(fitting, _open_torch)(checkpoint)
    # Some configurations do not have the size of the vocabulary at the top, but those of guided policies do.
    guide = open_guide(checkpoint.prompt, model.codec.decode, checkpoint.config.get("vocab_size", 0))
    return LocalPolicy(checkpoint.name, model, guide)


def _open_torch(checkpoint: Checkpoint) -> LoadedModel:
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UsageError(
            f"{checkpoint.path} is a {checkpoint.config['model_type']} checkpoint that needs torch and "
            "transformers; install them with: pip install 'podium-conductor[train]'."
        )
    from podium.conductor.torch_model import TorchModel  # noqa: PLC0415

    return TorchModel(checkpoint)
