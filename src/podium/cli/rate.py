"""`podium rate`: measures each worker of a pool on each cluster of a recording's training questions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from podium.cli.options import Flag
from podium.cli.output_files import parent_folder
from podium.cli.printable import counted, dollars, print_columns, say
from podium.cli.questions import open_questions
from podium.cli.terminal import print_json
from podium.errors import ConfigError, UsageError
from podium.evals.rating import find_clusters, rate_pool, with_gold
from podium.files.atomic import replace_file
from podium.tasks import ALL_TASKS, Task
from podium.team.team_file import open_pool
from podium.workers.calculator import CalculatorWorker
from podium.workers.pool import Pool
from podium.workers.ratings import Ratings
from podium.workers.replay import ReplayWorker, unknown_length_warning

_CLUSTERS = 128
"""The default number of clusters; the published ratings have as many."""


def rate_workers(
    recording: str,
    out: Path,
    /,
    *,
    pool: str,
    clusters: int | None = None,
    like: Path | None = None,
    words: Flag = False,
    split: str = "train",
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Rate the workers of a pool, so that planners know which worker answers which questions well.

    Args:
        recording: The recording, NAME.parquet.
        out: The file for the ratings, NAME.json. If it has ratings already, they are replaced.
        pool: The workers: a TOML file. Workers of the kind replay are rated, and calculators.
        clusters: How many clusters of similar wording the questions are sorted into; 1 keeps all in one cluster.
            Default: 128, or the clusters of --like.
        like: A file of ratings to add a worker to. Its clusters and the ratings of its workers are kept.
        words: Also learn what each word of a question adds to each worker's accuracy (ridge regression). Planners then
            see the accuracy that the question's words predict, in place of its cluster's. Excludes --like.
        split: The split whose questions are counted.
        seed: Seeds the clustering.
        json: Print the ratings as one line of JSON.
    """
    _check_options(recording, clusters=clusters, like=like, words=words, seed=seed)
    _check_out(out, Path(recording))
    known = None if like is None else Ratings.open(like)
    workers = open_pool(pool, rated=False)
    recorded, unrated = _recorded_workers(workers, pool, recording)
    tasks = list(open_questions(recording, split, size=ALL_TASKS, seed=seed, pool=workers))
    texts = [task.question.text for task in tasks]
    notes = (unrated, unknown_length_warning(recorded, texts), _without_gold_warning(workers, tasks))
    for note in filter(None, notes):
        say(note, stderr=True)
    words_of_clusters = (
        find_clusters(texts, clusters or _CLUSTERS, seed=seed) if known is None else known.clusters
    )
    ratings = asyncio.run(rate_pool(workers, tasks, words_of_clusters, words=words))
    if known is not None:
        ratings = known.joined(ratings)
    with parent_folder(out):
        replace_file(out, ratings.document)
    if json:
        print_json(ratings.model_dump_json(exclude_none=True))
    else:
        _print(ratings, out)
        line = f'ratings = "{os.path.relpath(out, Path(pool).parent)}"'
        say(f"For planners to see the ratings, put this line at the top of {pool}: {line}")
    return 0


def _check_options(
    recording: str, *, clusters: int | None, like: Path | None, words: bool, seed: int
) -> None:
    if not recording.endswith(".parquet"):
        raise UsageError(
            f"{recording}: workers are rated on a recording, NAME.parquet; make one with: podium record."
        )
    if like is not None and clusters is not None:
        raise UsageError(
            f"--clusters {clusters}: the clusters are those of --like {like}; leave one of the two out."
        )
    if like is not None and words:
        raise UsageError(
            "--words learns from the answers of all workers, and --like has none; leave one of the two out."
        )
    if (clusters is not None and clusters < 1) or not 0 <= seed < 2**32:
        raise UsageError("--clusters is at least 1, and --seed from 0 to 4294967295.")


def _recorded_workers(workers: Pool, pool: str, recording: str) -> tuple[list[ReplayWorker], str]:
    """The workers with recorded answers to bare questions, and a note on those without; "" if there are none."""
    replayed = [worker for worker in workers if isinstance(worker, ReplayWorker)]
    if not replayed:
        raise UsageError(
            f'{pool} has no worker of kind = "replay" to be rated: give a pool whose workers are of this kind, have '
            f'recording = "{recording}" and are called as they are there.'
        )
    unasked = ", ".join(worker.profile.name for worker in replayed if not worker.samples)
    note = unasked and f"{unasked}: not rated, because no response to a bare question is recorded."
    recorded = [worker for worker in replayed if worker.samples]
    if not recorded:
        raise UsageError(f"{note} Add workers that answer questions to {pool}.")
    return recorded, note


def _without_gold_warning(workers: Pool, tasks: Sequence[Task]) -> str | None:
    names = ", ".join(worker.profile.name for worker in workers if isinstance(worker, CalculatorWorker))
    known = len(with_gold(tasks))
    if not names or known == len(tasks):
        return None
    if known:
        return f"{names}: rated on the {known:,} of {len(tasks):,} questions that have a gold answer."
    return (
        f"{names}: not rated, because no question has a gold answer to compare with; rate a recording whose questions "
        "have gold answers."
    )


def _check_out(out: Path, recording: Path) -> None:
    """Refuse a path that cannot be written, or whose file has something other than ratings."""
    if out.suffix != ".json" or out.is_dir():
        raise UsageError(f"{out}: a ratings file is called NAME.json.")
    if out.resolve() == recording.with_suffix(".json").resolve():
        raise UsageError(f"{out} is the header of the recording; choose another name for the ratings.")
    if out.exists():
        try:
            Ratings.open(out)
        except ConfigError:
            raise UsageError(
                f"{out} exists and has no ratings; choose another name for the ratings."
            ) from None


def _print(ratings: Ratings, out: Path) -> None:
    say(f"{out}: {counted(len(ratings.clusters), 'cluster')} of questions")
    rows: list[tuple[str, ...]] = [("worker", "right", "$ for 1000", "best at")]
    for name, total in ratings.totals.items():
        asked = max(1, total.questions)
        usd = dollars(1000 * total.cost_usd / asked)
        rows.append((name, f"{total.right / asked:.1%}", usd, _best_clusters(ratings, name)))
    print_columns(rows)


def _best_clusters(ratings: Ratings, name: str, most: int = 3) -> str:
    ahead: list[tuple[float, str]] = []
    for kind, own in ratings.workers[name].items():
        shares = [
            tallies[kind].right / tallies[kind].questions
            for other, tallies in ratings.workers.items()
            if other != name and kind in tallies and tallies[kind].questions
        ]
        if own.questions:
            ahead.append((own.right / own.questions - max(shares, default=0.0), kind))
    return ", ".join(kind for lead, kind in sorted(ahead, reverse=True)[:most] if lead > 0)
