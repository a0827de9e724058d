"""`python -m podium_tinker.train model_name=... url=...`: GRPO on Tinker's GPUs, by the cookbook's own training loop.

The questions, the pool, the rounds and the reward are the scoring service's.
"""

from __future__ import annotations

import asyncio

import chz
from tinker_cookbook import model_info
from tinker_cookbook.rl import train
from tinker_cookbook.rl.rollout_strategy import MinViableGroup

from podium_tinker.dataset import PodiumDatasetBuilder


@chz.chz
class Options:
    """Each may be given as `name=value`."""

    model_name: str
    """A model that Tinker trains."""
    url: str
    """A running `podium score-server`."""
    key_env: str | None = None
    log_path: str = "runs/tinker"
    groups_per_batch: int = 4
    group_size: int = 64
    epochs: int = 1
    max_steps: int | None = None
    max_tokens: int = 1024
    """Of a plan."""
    learning_rate: float = 4e-5
    lora_rank: int = 32
    renderer_name: str | None = None
    """None: the one that the cookbook recommends for the model."""
    seed: int = 42
    wandb_project: str | None = None


def config_from(options: Options) -> train.Config:
    """The cookbook's configuration of the run."""
    renderer = options.renderer_name or model_info.get_recommended_renderer_name(options.model_name)
    return train.Config(
        model_name=options.model_name,
        renderer_name=renderer,
        recipe_name="podium",
        log_path=options.log_path,
        dataset_builder=PodiumDatasetBuilder(
            url=options.url,
            key_env=options.key_env,
            model_name=options.model_name,
            renderer_name=renderer,
            groups_per_batch=options.groups_per_batch,
            group_size=options.group_size,
            epochs=options.epochs,
            seed=options.seed,
        ),
        learning_rate=options.learning_rate,
        lora_rank=options.lora_rank,
        max_tokens=options.max_tokens,
        max_steps=options.max_steps,
        eval_every=0,
        remove_constant_reward_groups=True,
        # A rollout whose workers failed is left out, and the rest of its group is learned from. The workers' calls were
        # retried before they failed.
        rollout_error_tolerance=MinViableGroup(max_retries=0),
        wandb_project=options.wandb_project,
    )


async def main(options: Options) -> None:
    """Train, and close the connections to the service."""
    config = config_from(options)
    try:
        await train.main(config)
    finally:
        await config.dataset_builder.scoring.close()


if __name__ == "__main__":
    asyncio.run(main(chz.entrypoint(Options)))
