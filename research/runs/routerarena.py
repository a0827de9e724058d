"""Writes RouterArena's prediction files for a planner, and counts how often a paraphrase changes its choice.

python runs/routerarena.py CHECKOUT POOL.toml NAME [--planner by-ratings:0]

CHECKOUT is a clone of github.com/RouteWorks/RouterArena in which its own script has prepared the folder `dataset`.
POOL.toml has one worker for each model, under the model's name in RouterArena; no worker is called, and no key is
needed. The planner's plan for a prompt must ask one worker, since a prediction names one model. Into the checkout go
the configuration of the router and one file of predictions for each data set that is there: `full` (8,400 prompts),
`robustness` (420 paraphrases). Whoever has keys then has RouterArena ask the models. Robustness is the share of
paraphrases for which the planner chooses the same model as for the prompt itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from podium.errors import UsageError
from podium.planners import open_baseline
from podium.planners.planner import Planner, PlanRequest
from podium.team.team_file import open_pool
from podium.types import Question
from podium.workers import Pool
from podium.workflow import Workflow, needed_steps

DATASETS = {"full": "router_data.json", "robustness": "router_robustness.json"}

Entry = Mapping[str, Any]
"""With "global index", and "prompt_formatted" or "prompt"."""


def read_dataset(checkout: Path, name: str) -> list[Entry]:
    """The prompts of a data set; empty if the checkout does not have it."""
    file = checkout / "dataset" / DATASETS[name]
    if not file.is_file():
        return []
    entries: list[Entry] = json.loads(file.read_text(encoding="utf-8"))
    return [entry for entry in entries if entry.get("global index") and prompt_of(entry)]


def prompt_of(entry: Entry) -> str:
    return str(entry.get("prompt_formatted") or entry.get("prompt") or "")


async def choose(planner: Planner, pool: Pool, entry: Entry) -> str:
    """The worker that the plan for this prompt asks.

    Raises:
        UsageError: the plan asks several workers or none.
    """
    text = prompt_of(entry)
    # The seed is the prompt's index, so that a paraphrase has the luck of its prompt.
    request = PlanRequest(Question(text=text), pool.profiles_for(text), seed=f"{entry['global index']}")
    plan = (await planner.plan(request)).decision
    asked = [plan.steps[place].worker for place in needed_steps(plan)] if isinstance(plan, Workflow) else []
    if len(asked) != 1:
        raise UsageError(
            f"{planner.name} asks {len(asked)} workers about {entry['global index']}, and a prediction names one "
            "model; take a planner that chooses one worker, such as by-ratings:0."
        )
    return pool.names[asked[0]]


async def predict(planner: Planner, pool: Pool, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The rows of a prediction file. RouterArena fills in what the models answer."""
    return [
        {
            "global index": entry["global index"],
            "prompt": prompt_of(entry),
            "prediction": await choose(planner, pool, entry),
            "generated_result": None,
            "cost": None,
            "accuracy": None,
        }
        for entry in entries
    ]


def robustness(full: Iterable[Entry], paraphrased: Iterable[Entry]) -> tuple[int, int]:
    """How many paraphrases have the prediction of their prompt, and how many have a prompt."""
    known = {row["global index"]: row["prediction"] for row in full}
    pairs = [
        (known[row["global index"]], row["prediction"]) for row in paraphrased if row["global index"] in known
    ]
    return sum(one == other for one, other in pairs), len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("pool")
    parser.add_argument("name")
    parser.add_argument("--planner", default="by-ratings:0")
    options = parser.parse_args()
    pool = open_pool(options.pool, ready=False)
    planner = open_baseline(options.planner, pool.profiles)
    datasets = {name: read_dataset(options.checkout, name) for name in DATASETS}
    if not any(datasets.values()):
        raise UsageError(
            f"{options.checkout}/dataset has no prompts; let RouterArena's own script prepare it."
        )
    rows = {name: asyncio.run(predict(planner, pool, entries)) for name, entries in datasets.items()}
    place = options.checkout / "router_inference"
    models = list(pool.answering)
    files = {
        f"config/{options.name}.json": {
            "pipeline_params": {"router_name": options.name, "models": models},
        },
        f"predictions/{options.name}.json": rows["full"],
        f"predictions/{options.name}-robustness.json": rows["robustness"],
    }
    for name, content in files.items():
        if content:
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
            print(f"{file}: {len(content)} predictions" if isinstance(content, list) else f"{file}")
    same, of = robustness(rows["full"], rows["robustness"])
    if of:
        print(f"Robustness: {same} of {of} paraphrases go to the model of their prompt, {same / of:.1%}.")


if __name__ == "__main__":
    try:
        main()
    except UsageError as error:
        sys.exit(str(error))
