"""Opens the Conductor that a user names: a checkpoint, a worker of the pool, or any model behind an endpoint.

`ConductorSettings` are the words for it in a pool file. Here is decided, for every application alike, which engine runs
a checkpoint, how a model is prompted, and whether it may try twice. Which Conductor leads where none is named is for
`podium.orchestrator.planning`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from podium.conductor.checkpoint import Checkpoint, Conducts, PlanSettings, PodiumFile
from podium.conductor.planner import Conductor
from podium.conductor.policy import Policy, Sampling
from podium.conductor.prompt import PromptSettings
from podium.config import Settings, suggestion
from podium.errors import CheckpointError, ConfigError, UsageError
from podium.types import Limits, Price
from podium.workers.base import Worker
from podium.workers.build import BuildContext, build_worker
from podium.workers.connections import Connections
from podium.workers.pool import Pool
from podium.workers.spec import OpenAISpec

if TYPE_CHECKING:
    from podium.conductor.local_policy import Engine

_MOST_TOKENS = 8192
"""For instruct models: they may reason at length before they write the three lists."""
_WAY_OUT = (
    'Let a model conduct untrained: name one in the pool file, as in [conductor] with worker = "NAME", or leave '
    "the Conductor out."
)
SMALL = 50_000_000
"""Parameters up to which NumPy is used: there it is as fast as torch, and starts without its import."""


class ConductorSettings(Settings):
    """A checkpoint, a worker of the pool, or an endpoint; nothing of these: what `open_planner` takes by itself."""

    checkpoint: str | None = None
    """A folder seen from the pool file's folder, or a shipped checkpoint's name."""
    cost_sensitivity: float | None = Field(
        default=None, validation_alias=AliasChoices("cost_sensitivity", "thrift")
    )
    """How much a checkpoint that knows levels of cost sensitivity is to save."""
    worker: str | None = None
    """The name of a worker of this pool, which then conducts untrained, at its own price."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint whose model conducts untrained, up to and without /chat/completions."""
    model: str | None = None
    """The name of the model there."""
    api_key_env: str | None = None
    """The environment variable that holds the key for it."""
    price: Price | None = None
    """Its dollars per million tokens; None: not known, and plans are shown as unpriced."""
    limits: Limits = Limits(max_tokens=_MOST_TOKENS)
    """Of the endpoint, as a worker's; it may reason at length before it writes the three lists."""
    temperature: float | None = Field(default=None, ge=0)
    """None: none is sent."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What the endpoint calls `limits.max_tokens`; None: as for a worker."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body."""
    settings: str | None = None
    """Of an endpoint that serves a trained Conductor: where its podium.json is, as `read_podium_file` takes it, seen
    from the pool file's folder. It is then prompted and bounded as it was trained, and leads no other pool."""
    prompt: PromptSettings = PromptSettings()
    """How a worker or an endpoint is prompted for a plan; a checkpoint brings its own."""
    fallback: str | None = None
    """The worker that takes a question whose planning failed for good; None: the one that conducts, else the first
    that is not simulated."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        sources = [key for key in ("checkpoint", "worker", "base_url") if getattr(self, key) is not None]
        if len(sources) > 1:
            raise ValueError(f"{' and '.join(sources)} each name a Conductor; keep one of them.")
        if (self.base_url is None) != (self.model is None):
            raise ValueError("an endpoint needs both base_url and model.")
        of_endpoint = {"api_key_env", "price", "limits", "temperature", "max_tokens_key", "extra", "settings"}
        if self.base_url is None and (idle := sorted(of_endpoint & self.model_fields_set)):
            raise ValueError(f"{idle[0]} is for an endpoint; add base_url and model, or leave it out.")
        if self.checkpoint is None and self.cost_sensitivity is not None:
            raise ValueError("cost_sensitivity is for a checkpoint; add checkpoint, or leave it out.")
        if self.checkpoint is not None and "prompt" in self.model_fields_set:
            raise ValueError("a checkpoint brings its own prompt; leave prompt out.")
        if self.settings is not None and "prompt" in self.model_fields_set:
            raise ValueError("settings brings the prompt of the trained Conductor; leave prompt out.")
        return self

    def obeying(self, trained: PodiumFile) -> Self:
        """The same endpoint, asked as its policy was trained; what this table says itself stays."""
        plan = trained.plan or PlanSettings()
        update: dict[str, Any] = {"prompt": trained.prompt}
        if self.temperature is None and trained.plan is not None:
            update["temperature"] = plan.temperature
        says = "limits" in self.model_fields_set and "max_tokens" in self.limits.model_fields_set
        if plan.max_plan_tokens is not None and not says:
            update["limits"] = self.limits.model_copy(update={"max_tokens": plan.max_plan_tokens})
        if plan.chat_template_kwargs and "chat_template_kwargs" not in self.extra:
            update["extra"] = {**self.extra, "chat_template_kwargs": plan.chat_template_kwargs}
        return self.model_copy(update=update)


class _PoolFile(BaseModel):
    """A pool file, of which the `[conductor]` table alone is looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    conductor: ConductorSettings = ConductorSettings()


def conductor_settings(pool: Pool) -> ConductorSettings:
    """What the pool's file says of its Conductor; of a pool without a file, nothing.

    Raises:
        ConfigError: the table cannot be used, or names a worker that the pool lacks; with the file and the line.
    """
    if pool.source is None:
        return ConductorSettings()
    settings = pool.source.into(_PoolFile).conductor
    for key in ("worker", "fallback"):
        name = getattr(settings, key)
        if name is not None and name not in pool.names:
            raise pool.source.refuse(
                ConfigError(
                    f"conductor.{key} names {name!r}, which is not in the pool; {suggestion(name, pool.names)}",
                    ("conductor", key),
                )
            )
    if settings.settings is not None and (beside := pool.folder / settings.settings).exists():
        return settings.model_copy(update={"settings": str(beside)})
    return settings


def open_conductor(
    source: str = "conductor",
    pool: Pool | None = None,
    *,
    cost_sensitivity: float | None = None,
    option: str = "cost_sensitivity",
) -> Conductor:
    """The Conductor of a checkpoint folder, or of the shipped checkpoint of that name.

    Args:
        pool: the workers that it is to lead; None: not known yet, and not checked.
        cost_sensitivity: the level, or something between two, if it knows some; None: as it was trained to.
        option: the caller's name for that level, for messages.

    Raises:
        CheckpointError: the folder is not a checkpoint, or one that must not lead this pool.
        UsageError: a level that it does not know, or a checkpoint that needs torch, which is not installed.
    """
    checkpoint = Checkpoint.read(source)
    if pool is not None:
        refuse_misfit(str(checkpoint.path), checkpoint.conducts, pool)
    prompt = checkpoint.prompt
    if cost_sensitivity is not None and not 0 <= cost_sensitivity <= prompt.levels - 1:
        known = f"levels 0 to {prompt.levels - 1}" if prompt.levels else "no levels of cost sensitivity"
        raise UsageError(f"{option} {cost_sensitivity:g}: {checkpoint.path} knows {known}.")
    return Conductor(
        open_policy(checkpoint),
        prompt,
        cost_sensitivity=cost_sensitivity,
        second_try=True,
        sampling=_sampling(checkpoint),
        name="conductor" if source == "conductor" else f"conductor:{checkpoint.name}",
    )


def _sampling(checkpoint: Checkpoint) -> Sampling:
    """How its plans are drawn: as podium.json says, else greedily and with as many tokens as its style may need."""
    plan = checkpoint.plan or PlanSettings()
    most = plan.max_plan_tokens or (_MOST_TOKENS if checkpoint.prompt.style == "full" else None)
    return Sampling(temperature=plan.temperature, max_tokens=most)


def refuse_misfit(name: str, conducts: Conducts, pool: Pool) -> None:
    """Refuse a policy for a pool that it was not trained to lead.

    Raises:
        CheckpointError: why, and the way out.
    """
    misfit = conducts.misfit(pool)
    if misfit is not None:
        raise CheckpointError(f"{name} cannot lead this pool: {misfit} {_WAY_OUT}")


def build_endpoint(settings: ConductorSettings, pool: Pool) -> Worker:
    """The endpoint of a `[conductor]` table, as a worker beside the pool; it is the caller's to close.

    It shares the secrets of the pool: what one endpoint is sent, a reply of the other may repeat.

    Raises:
        ConfigError: its key is not in the environment, or its URL is none.
    """
    keys = ("model", "base_url", "api_key_env", "limits", "temperature", "max_tokens_key", "extra")
    given = {key: getattr(settings, key) for key in keys}
    spec = OpenAISpec(kind="openai", name=settings.model or "", price=settings.price or Price(), **given)
    try:
        return build_worker(spec, BuildContext(Connections(pool.secrets)))
    except ConfigError as error:
        message = str(error).replace(f"Worker {spec.name!r}", "The Conductor")
        raise ConfigError(message, ("conductor", *error.where)) from None


def conductor_of(policy: Policy, prompt: PromptSettings | None = None) -> Conductor:
    """The Conductor that a worker makes: any instruct model, untrained, or a served policy, by the prompt that it was
    trained with. What the policy holds stays the caller's to close.
    """
    return Conductor(policy, prompt, second_try=True, name=f"conductor:{policy.name}")


def open_policy(source: str | Path | Checkpoint) -> Policy:
    """Load the policy of a checkpoint folder, or of the shipped checkpoint of that name.

    A Llama- or Qwen2-shaped one of at most 50 M parameters that reads plain text runs in NumPy; any other
    through transformers.

    Raises:
        CheckpointError: the folder is not a checkpoint, or its files do not belong together.
        UsageError: it needs torch, which is not installed.
    """
    # OpenBLAS reads this when NumPy is first imported. Its threads spin while they wait: beside another busy
    # process on two cores, 200 tokens read and 60 written took 1.6 s, and take 0.12 s on one thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from podium.conductor.local_policy import LocalPolicy  # noqa: PLC0415

    checkpoint = source if isinstance(source, Checkpoint) else Checkpoint.read(source)
    return LocalPolicy(checkpoint.name, _engine(checkpoint))


def _engine(checkpoint: Checkpoint) -> Engine:
    if _is_small(checkpoint):
        from podium.conductor.numpy_engine import NumpyEngine  # noqa: PLC0415

        return NumpyEngine(checkpoint)
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UsageError(
            f"{checkpoint.path} is a {checkpoint.config['model_type']} checkpoint that needs torch and "
            "transformers; install them with: pip install 'podium-conductor[train]'."
        )
    from podium.conductor.torch_engine import TorchEngine  # noqa: PLC0415

    return TorchEngine(checkpoint)


def _is_small(checkpoint: Checkpoint) -> bool:
    """Whether the NumPy engine computes exactly this model, and fast."""
    from podium.conductor.llama import is_llama  # noqa: PLC0415

    if (
        checkpoint.chats
        or not is_llama(checkpoint.config)
        or not (checkpoint.path / "tokenizer.json").is_file()
    ):
        return False
    parameters = checkpoint.parameters()
    return parameters is not None and parameters <= SMALL
