"""Publishes the policy of a run: its folder, with a model card from what the run recorded."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from podium import __version__
from podium.conductor.checkpoint import Checkpoint
from podium.errors import ConfigError, StoreError, UsageError
from podium.files.atomic import atomic_folder
from podium.rollout.run_folder import RunFolder
from podium.team.team_file import open_pool
from podium.train.trained_policy import POLICY_ROWS, name_without_folder

HUB = "hub:"
STAGE_NOTE = "stage.txt"
"""The file in a run's folder by which a stage of another package says how it trained, for the card."""
_AVERAGED_ROWS = 10
"""How many rows the means "at first" and "in the end" include."""


def publish(run: Path, to: str, *, private: bool = False) -> str:
    """Write the policy of a run with its card to a new folder, or to the Hugging Face hub ("hub:OWNER/NAME").

    Returns:
        Where the policy lies: the folder, or its address on the hub.

    Raises:
        UsageError: `run` is no run, has no policy yet or goes on past its policy, the new folder is not empty, or the
            hub refuses.
    """
    policy = run / "policy"
    if not ((policy / "podium.json").is_file() and (run / "config.json").is_file()):
        raise UsageError(f"{run} has no trained policy yet; let podium train --run {run} end first.")
    _check_ended(run)
    on_hub = to.startswith(HUB)
    card = model_card(run, to.removeprefix(HUB), on_hub=on_hub)
    if on_hub:
        return _upload(policy, card, to.removeprefix(HUB), private=private)
    folder = Path(to)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} holds something already; give a new folder.")
    try:
        with atomic_folder(folder) as unfinished:
            shutil.copytree(policy, unfinished, dirs_exist_ok=True)
            (unfinished / "README.md").write_text(card, encoding="utf-8")
    except OSError as error:
        raise StoreError.of_file(folder, error) from None
    return str(folder)


def _check_ended(run: Path) -> None:
    """Refuse a run that went on after it wrote its policy, and did not end: its rows are not those of the policy."""
    learned = run / POLICY_ROWS
    if not learned.is_file():  # The run is of a stage, or of a version, that does not write it.
        return
    of_policy, rows = int(learned.read_bytes()), len(RunFolder(run).rows().read())
    if rows != of_policy:
        raise UsageError(
            f"{run} has {rows} rows of metrics, and its policy was written after {of_policy}; let podium train --run "
            f"{run} end first."
        )


def _upload(policy: Path, card: str, name: str, *, private: bool) -> str:
    from huggingface_hub import HfApi  # noqa: PLC0415 - for the hub alone
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    api = HfApi()
    with tempfile.TemporaryDirectory() as scratch:
        readme = Path(scratch) / "README.md"
        readme.write_text(card, encoding="utf-8")
        try:
            url = api.create_repo(name, private=private, exist_ok=True)
            if private and not api.repo_info(url.repo_id).private:  # It existed, and keeps its visibility.
                raise UsageError(
                    f"{url.repo_id} is on the hub already, and public; make it private in its settings there, or give "
                    "another name. Nothing was uploaded."
                )
            api.upload_folder(repo_id=name, folder_path=policy)
            api.upload_file(repo_id=name, path_or_fileobj=readme, path_in_repo="README.md")
        except (HfHubHTTPError, OSError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise UsageError(f"The hub refuses {name}: {reason} Log in first with: hf auth login") from None
    return str(url)


def model_card(run: Path, name: str, *, on_hub: bool = False) -> str:
    """The card: what the policy is, what it was trained on, how it learned, what it cannot do, and how to serve it.

    Args:
        name: the published folder, or OWNER/NAME on the hub.
        on_hub: whether users have to fetch the policy from the hub first.
    """
    folder = RunFolder(run)
    settings, rows = folder.configuration, folder.rows().read()
    policy = Checkpoint.read(run / "policy")
    start = str(settings.get("start", "unknown") or "fresh weights")
    shown_start = name_without_folder(start)
    folder_name = name.rpartition("/")[2] if on_hub else name
    base = f"base_model: {start}\n" if start.count("/") == 1 and shown_start == start else ""
    questions = f"- Questions: {name_without_folder(str(settings.get('tasks')))}, train split"
    trained_on = (questions, _pool_line(str(settings.get("pool"))), *_stage_lines(run, settings, len(rows)))
    trained, learned, limits = map("\n".join, (trained_on, _curve_lines(rows), _limit_lines(policy, rows)))
    fetch = f"hf download {name} --local-dir {folder_name}\n" if on_hub else ""
    return f"""\
---
library_name: transformers
pipeline_tag: text-generation
tags: [podium, conductor{", trl" if settings.get("engine") == "trl" else ""}]
{base}---
# {name}

A Conductor: a language model that writes workflows for a team of other models. It does not answer questions itself. \
Trained with Podium {__version__} from {shown_start}.

## Trained on

{trained}

## How it learned

{learned}

## Limits

{limits}

## Use it

podium.json says how to prompt the model. Podium reads it when it opens the model.

```bash
{fetch}podium ask "Your question" --conductor {folder_name} --pool YOUR-POOL.toml
podium serve --conductor {folder_name} --pool YOUR-POOL.toml
```
"""


def _pool_line(pool: str) -> str:
    shown = name_without_folder(pool)
    try:
        workers = open_pool(pool, ready=False)
    except ConfigError:
        return f"- Workers: the pool {shown}"
    return f"- Workers: {len(workers)} of the pool {shown}: {', '.join(workers.names)}"


def _stage_lines(run: Path, settings: Mapping[str, Any], rows: int) -> Iterator[str]:
    tuned = "all weights" if settings.get("lora") is None else "LoRA adapters, merged"
    if (note := run / STAGE_NOTE).is_file():
        yield f"- {note.read_text(encoding='utf-8').strip()}"
    elif settings.get("stage") == "sft":
        yield f"- Supervised on {name_without_folder(settings['sft']['examples'])} ({tuned})"
        return
    elif grpo := settings.get("grpo"):
        yield (
            f"- GRPO: {rows or grpo.get('iterations')} iterations of {grpo.get('questions')} questions with "
            f"{grpo.get('group')} rollouts each, {settings.get('rounds')} round(s), learning rate {grpo.get('lr')} "
            f"({tuned})"
        )
    yield f"- Seed: {settings.get('seed')}"


def _curve_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    shown_keys = [
        key for key in ("reward", "valid", "accuracy", "cost_usd", "loss") if rows and key in rows[0]
    ]
    if not shown_keys:
        return ["No rows of metrics were kept."]
    first, last = rows[:_AVERAGED_ROWS], rows[-_AVERAGED_ROWS:]
    span = f"{min(_AVERAGED_ROWS, len(rows))} rows"
    return [
        f"Means over the first and the last {span}, on training questions; this is no evaluation.",
        "",
        "| | at first | in the end |",
        "|---|---|---|",
        *(f"| {key} | {_mean(first, key):.4g} | {_mean(last, key):.4g} |" for key in shown_keys),
    ]


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    return fmean(float(row[key]) for row in rows if key in row)


def _limit_lines(policy: Checkpoint, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    scope = policy.scope
    lines = [f"- It was trained to conduct {scope.questions}; others were not measured."]
    if scope.workers:
        lines.append(f"- It knows workers only by number, in this order: {', '.join(scope.workers)}.")
    if scope.simulated:
        lines.append("- Its workers were scripted or recorded. Podium lets it lead no real ones.")
    elif any(row.get("recorded") for row in rows):
        lines.append("- Some of its workers' answers were recorded.")
    return lines
