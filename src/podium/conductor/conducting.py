"""The Conductor that a user names: a checkpoint, a worker of the pool, or any model behind an endpoint.

How each is asked, and whether it may try twice, is decided here, for every application alike.
"""

from __future__ import annotations

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.opening import open_policy
from podium.conductor.planner import Conductor
from podium.conductor.policy import Policy, Sampling
from podium.conductor.prompt import PromptSettings
from podium.conductor.served_policy import ServedPolicy
from podium.conductor.settings import ConductorSettings
from podium.errors import CheckpointError, ConfigError, UsageError
from podium.types import Price
from podium.workers.base import Worker
from podium.workers.build import build_worker
from podium.workers.pool import Pool
from podium.workers.redaction import read_key
from podium.workers.spec import OpenAISpec

_WAY_OUT = (
    'Let a model conduct untrained: name one in the pool file, as in [conductor] with worker = "NAME", or leave '
    "the Conductor out."
)
_THINKING_ALOUD = Sampling(max_tokens=8192)
"""For instruct models: they may reason at length before they write the three lists."""


def open_conductor(
    source: str = "conductor",
    pool: Pool | None = None,
    *,
    cost_sensitivity: float | None = None,
    option: str = "cost_sensitivity",
) -> Conductor:
    """The Conductor of a checkpoint folder, or of the shipped checkpoint of that name.

    Args:
        pool: whom it is to lead; None: not known yet, and not checked.
        cost_sensitivity: the level, or something between two, if it knows some; None: as it was trained to.
        option: what whoever asks calls that level, for the message.

    Raises:
        CheckpointError: the folder is not a checkpoint, or one that must not lead this pool.
        UsageError: a level that it does not know, or a checkpoint that needs torch, which is not installed.
    """
    checkpoint = Checkpoint.read(source)
    misfit = None if pool is None else checkpoint.misfit(pool)
    if misfit is not None:
        raise CheckpointError(f"{checkpoint.path} cannot lead this pool: {misfit} {_WAY_OUT}")
    prompt = checkpoint.prompt
    full = prompt.style == "full"
    if cost_sensitivity is not None and not 0 <= cost_sensitivity <= prompt.levels - 1:
        known = f"levels 0 to {prompt.levels - 1}" if prompt.levels else "no levels of cost sensitivity"
        raise UsageError(f"{option} {cost_sensitivity:g}: {checkpoint.path} knows {known}.")
    return Conductor(
        open_policy(checkpoint),
        prompt,
        cost_sensitivity=cost_sensitivity,
        second_try=True,
        sampling=_THINKING_ALOUD if full else None,
        name="conductor" if source == "conductor" else f"conductor:{checkpoint.name}",
    )


def served_policy(
    url: str,
    model: str,
    *,
    key_env: str | None = None,
    price: tuple[float, float] | None = None,
    option: str = "conductor_key_env",
) -> ServedPolicy:
    """The policy behind an endpoint; it is the caller's to close.

    Args:
        key_env: the environment variable that holds the key; None: no key is sent.
        price: dollars per million tokens, input and output.
        option: what whoever asks calls `key_env`, for the message.

    Raises:
        ConfigError: the key is not there, or the URL is none.
    """
    from podium.workers.chat.client import ChatClient  # noqa: PLC0415 - loads the HTTP client

    key = None if key_env is None else read_key(key_env, option)
    priced = None if price is None else Price(input=price[0], output=price[1])
    return ServedPolicy(ChatClient(url, key), model, price=priced)


def build_endpoint(settings: ConductorSettings, pool: Pool) -> Worker:
    """The endpoint of a `[conductor]` table, as a worker beside the pool; it is the caller's to close.

    Raises:
        ConfigError: its key is not in the environment, or its URL is none; with the file and the line.
    """
    keys = ("model", "base_url", "api_key_env", "limits", "temperature", "max_tokens_key", "extra")
    given = {key: getattr(settings, key) for key in keys}
    spec = OpenAISpec(kind="openai", name=settings.model or "", price=settings.price or Price(), **given)
    try:
        return build_worker(spec)
    except ConfigError as error:
        message = str(error).replace(f"Worker {spec.name!r}", "The Conductor")
        refused = ConfigError(message, ("conductor", *error.where))
        raise refused if pool.source is None else pool.source.refuse(refused) from None


def untrained_conductor(policy: Policy, prompt: PromptSettings | None = None) -> Conductor:
    """The Conductor that any instruct model makes; what the policy holds stays the caller's to close."""
    return Conductor(
        policy,
        prompt or PromptSettings(),
        second_try=True,
        sampling=_THINKING_ALOUD,
        name=f"conductor:{policy.name}",
    )
