"""The tables of a suite: a comparison for each task set and pool, from the kept answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from podium.evals.comparison import Comparison, ComparisonRow, adjusted, row
from podium.evals.evaluation import Evaluation, accuracy
from podium.evals.looks import sentence_on
from podium.evals.suite.manifest import Manifest, SuiteRow, SuiteTable
from podium.evals.suite.results import Results, without_garbage_collection
from podium.rollout import Rollout


def evaluations_of(table: SuiteTable, results: Results) -> dict[str, Evaluation]:
    """The evaluation of each row that has all of its answers, by label."""
    with without_garbage_collection():
        return {
            row.label: results.evaluation([cell.key for cell in row.cells])
            for row in table.rows
            if all(len(results.lines(cell.key)) >= cell.answers for cell in row.cells)
        }


def unfinished(table: SuiteTable, results: Results) -> list[str]:
    """The labels of the rows that lack answers."""
    return [
        row.label
        for row in table.rows
        if any(len(results.lines(cell.key)) < cell.answers for cell in row.cells)
    ]


def comparison_of(manifest: Manifest, table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Comparison:
    """The table: each row beside the first one.

    Args:
        evaluations: of the rows, by label; at least one.
    """
    rows = {row.label: row for row in table.rows}
    first = next(iter(evaluations))
    taken = [len(rollout.trace.rounds) for each in evaluations.values() for rollout in each.rollouts]
    compared = [
        _compared(rows[label], evaluation, None if label == first else evaluations[first])
        for label, evaluation in evaluations.items()
    ]
    bound = oracle_of({label: each for label, each in evaluations.items() if rows[label].kind == "single"})
    if bound is not None:
        compared.append(row("oracle", ORACLE, bound))
    return Comparison(
        questions=len(evaluations[first].by_question),
        seed=evaluations[first].seed,
        pool=evaluations[first].pool,
        simulated=any(evaluation.simulated for evaluation in evaluations.values()),
        recorded=any(evaluation.recorded for evaluation in evaluations.values()),
        rows=adjusted(compared),
        conditioned=table.conditioned,
        tasks=f"{Path(table.tasks).stem}/{table.split}",
        max_steps=manifest.max_steps,
        # A row may have more rounds than the suite, and then its label or its method says so.
        rounds=manifest.rounds if max(taken, default=0) <= manifest.rounds else None,
        notes=(
            *table.notes,
            *_on_looks(table),
            *_on_seeds(table, evaluations),
            *_on_controls(table, evaluations),
            *_on_decline(table, evaluations),
        ),
        reference="Conductor" if rows[first].kind == "conductor" else first,
    )


ORACLE = "Oracle (a bound for one answer)"
"""The label of the row that is computed from those of the workers alone."""


def oracle_of(singles: Mapping[str, Evaluation]) -> Evaluation | None:
    """Who chooses one worker for each question and knows which of their answers is right: the cheapest right answer, or
    where none is right the cheapest. None: there are not two workers.

    It is a bound only for plans that call one worker once: a vote or a later sample may be right where no worker's
    first answer is.
    """
    if len(singles) < 2:
        return None
    first, *others = singles.values()
    answers: list[list[Rollout]] = [[rollout] for rollout in first.rollouts]
    for other in others:
        of_other = {(rollout.task_id, rollout.trace.seed): rollout for rollout in other.rollouts}
        for found in answers:
            same = of_other.get((found[0].task_id, found[0].trace.seed))
            if same is not None:
                found.append(same)
    best = (max(found, key=lambda one: (one.correct, -one.trace.uncached_usd)) for found in answers)
    return replace(first, planner="oracle", rollouts=tuple(best))


def _compared(shown: SuiteRow, evaluation: Evaluation, against: Evaluation | None) -> ComparisonRow:
    found = row(shown.kind, shown.label, evaluation, against=against)
    return found.model_copy(update={"rules_out": shown.rules_out})


def _on_controls(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """Which planners were chosen on training questions, and what each control would explain."""
    for shown in table.rows:
        found = evaluations.get(shown.label) if shown.chosen else None
        if found is not None:
            yield f"{shown.label}: {found.planner}, chosen on training questions."
        if shown.rules_out:
            yield f"{shown.label}: if this row is as accurate, {shown.rules_out}."


def _on_seeds(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """The accuracy of each checkpoint, for rows in which each seed has its own."""
    for shown in table.rows:
        if not shown.by_seed or shown.label not in evaluations:
            continue
        by_seed: dict[str, list[Rollout]] = defaultdict(list)
        for rollout in evaluations[shown.label].rollouts:
            by_seed[_seed(rollout)].append(rollout)
        shares = (points(accuracy(found), 1) for found in by_seed.values())
        yield f"{shown.label}: each seed has a checkpoint of its own; they are right on {', '.join(shares)} %."


def points(share: float | None, places: int) -> str:
    """A share in percent; a dash if the grader could judge no answer."""
    return "–" if share is None else f"{100 * share:.{places}f}"


def _seed(rollout: Rollout) -> str:
    """The seed of the suite, which `rollout_seed` writes second."""
    return rollout.trace.seed.split("/")[1]


def _on_looks(table: SuiteTable) -> list[str]:
    """How often the split was looked at, with this look."""
    looks = () if table.looks is None else table.looks.of_split(table.split)
    known = any(look.config == table.config for look in looks)
    return [sentence_on(looks, table.config)] if known else []


SOON = 50
"""So many questions after a worker turned bad are counted apart from the later ones. A worker without a call in so many
in a row was left."""


def _on_decline(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """How often each row calls a worker that turns bad during the test, and how often it is right, before and after."""
    decline = table.decline
    if decline is None:
        return
    for label, evaluation in evaluations.items():
        by_seed = in_order(evaluation)
        bounds = (0, decline.at, decline.at + SOON, None)
        told = []
        for begin, end in pairwise(bounds):
            part = [rollout for rollouts in by_seed.values() for rollout in rollouts[begin:end]]
            calling = sum(calls_worker(rollout, decline.worker) for rollout in part)
            told.append((calling / max(1, len(part)), accuracy(part)))
        called, right = (
            ", ".join(points(share, 0) for share in shares) for shares in zip(*told, strict=True)
        )
        left: list[str] = []
        for (seed, _), rollouts in by_seed.items():
            calls = [calls_worker(rollout, decline.worker) for rollout in rollouts]
            after = _left_after(calls[decline.at :])
            usual = 100 * sum(calls[: decline.at]) / max(1, decline.at)
            left.append(f"seed {seed} {'never' if after is None else after} ({usual:.0f} %)")
        yield (
            f"{label}: it calls {decline.worker} for {called} % of the questions before {decline.worker} turns bad, of "
            f"the next {SOON}, and of the others; of these {right} % are answered rightly. After so many questions "
            f"{SOON} in a row do without {decline.worker} (in brackets: its share of calls before): {', '.join(left)}."
        )


def in_order(evaluation: Evaluation) -> dict[tuple[str, str], list[Rollout]]:
    """The rollouts of each seed and repeat, by both, in the order in which the questions were asked."""
    by_seed: dict[tuple[str, str], list[Rollout]] = defaultdict(list)
    for rollout in evaluation.rollouts:
        by_seed[_seed(rollout), rollout.trace.seed.split("/")[-1]].append(rollout)
    for rollouts in by_seed.values():
        rollouts.sort(key=lambda rollout: rollout.trace.started_at)
    return by_seed


def calls_worker(rollout: Rollout, worker: str) -> bool:
    """Whether a step of the question was given to the worker."""
    return any(span.worker == worker for span in rollout.trace.spans)


def _left_after(calls: Sequence[bool]) -> int | None:
    """After how many questions the first `SOON` in a row have no call; None: nowhere so many."""
    return next((k for k in range(len(calls) - SOON + 1) if not any(calls[k : k + SOON])), None)
