"""The tables of a suite: a comparison for each task set and pool, from the kept answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from podium.evals.answer_files import AnswerFiles, without_garbage_collection
from podium.evals.comparison import ORACLE, Comparison, comparison_row, with_adjusted_p_values
from podium.evals.evaluation import Evaluation, accuracy, seed_of
from podium.evals.look_log import describe_looks
from podium.evals.suite.manifest import SeedAnswersFile, SuiteManifest, SuiteTable
from podium.evals.suite.plan_controls import MAX_SAMPLES
from podium.evals.suite.suite_settings import PoolEntry
from podium.rollout import Rollout

COMPARISON = "comparison.json"
"""The file with the comparison for programs, in the folder of a run with one table."""


def evaluations_of(table: SuiteTable, results: AnswerFiles) -> dict[str, Evaluation]:
    """The evaluation of each row that has all of its answers, by label.

    Raises:
        RunMismatchError: a line of a file is damaged.
    """
    evaluations = {}
    with without_garbage_collection():
        for row in table.rows:
            found = [list(results.answers(file.key).values()) for file in row.files]
            if all(len(answers) >= file.answers for answers, file in zip(found, row.files, strict=True)):
                answers = tuple(chain.from_iterable(found))
                evaluations[row.label] = Evaluation(best_of(answers, row.entry.best_of))
    return evaluations


def best_of(answers: Sequence[Rollout], plans: int) -> tuple[Rollout, ...]:
    """Of each `plans` answers one after another, the best: a right answer, then one without a verdict, which may be
    right, then one with a high score, then a cheap one. It has the grading costs of all of them."""
    if plans == 1:
        return tuple(answers)
    return tuple(
        best.model_copy(
            update={
                "sample": best.sample // plans,
                "grade": replace(best.grade, cost_usd=sum(each.grade.cost_usd for each in sampled)),
            }
        )
        for sampled in zip(*[iter(answers)] * plans, strict=True)
        for best in [max(sampled, key=_preference)]
    )


def _preference(answer: Rollout) -> tuple[bool, bool, float, float]:
    return answer.correct, answer.grade.failure is not None, answer.grade.score, -answer.trace.uncached_usd


def comparison_of(
    manifest: SuiteManifest, table: SuiteTable, evaluations: Mapping[str, Evaluation], results: AnswerFiles
) -> Comparison:
    """The table: each row compared with the first row.

    Args:
        evaluations: the evaluations of the rows, by label. There is at least one.
    """
    rows = {row.label: row for row in table.rows}
    first, rounds = next(iter(evaluations)), manifest.settings.budget.rounds
    rounds_taken = [
        len(rollout.trace.rounds) for evaluation in evaluations.values() for rollout in evaluation.rollouts
    ]
    compared = [
        comparison_row(
            rows[label].kind,
            label,
            evaluation,
            against=None if label == first else evaluations[first],
            rules_out=rows[label].rules_out,
        )
        for label, evaluation in evaluations.items()
    ]
    bound = oracle_of(
        {label: evaluation for label, evaluation in evaluations.items() if rows[label].kind == "single"}
    )
    if bound is not None:
        compared.append(comparison_row("oracle", ORACLE, bound))
    return Comparison(
        questions=len(evaluations[first].by_question),
        seed=evaluations[first].seed,
        pool=evaluations[first].pool,
        recorded=any(evaluation.recorded for evaluation in evaluations.values()),
        rows=with_adjusted_p_values(compared),
        conditioned=table.conditioned,
        tasks=f"{Path(table.settings.tasks.name).stem}/{table.settings.split}",
        max_steps=manifest.settings.max_steps,
        # If a row has more rounds than the suite, its label or its method says so.
        rounds=rounds if max(rounds_taken, default=0) <= rounds else None,
        notes=(
            *table.notes,
            *_on_looks(table),
            *_on_seeds(table, evaluations),
            *_on_training(table, results),
            *_on_controls(table, evaluations),
        ),
        reference="Conductor" if rows[first].kind == "conductor" else first,
    )


def oracle_of(singles: Mapping[str, Evaluation]) -> Evaluation | None:
    """The evaluation of an oracle, which chooses one worker for each question and knows which answers are right. It
    takes the cheapest right answer. If none is right, it takes the cheapest answer without a verdict, so that accuracy
    leaves the question out, as it may for a single worker; or else the cheapest answer. None if there are fewer than
    two workers, or if it would leave out every question.

    The oracle bounds only plans that call one worker once. A vote or a later sample may be right even if no worker's
    first answer is.
    """
    if len(singles) < 2:
        return None
    first, *others = singles.values()
    answers: list[list[Rollout]] = [[rollout] for rollout in first.rollouts]
    for other in others:
        of_other = {(rollout.task, rollout.trace.seed): rollout for rollout in other.rollouts}
        for by_task in answers:
            same = of_other.get((by_task[0].task, by_task[0].trace.seed))
            if same is not None:
                by_task.append(same)
    oracle = Evaluation(tuple(max(by_task, key=_oracle_preference) for by_task in answers))
    return oracle if oracle.right else None


def _oracle_preference(answer: Rollout) -> tuple[float, bool, float]:
    return answer.correct, answer.grade.failure is not None, -answer.trace.uncached_usd


def _on_controls(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """Which planners were chosen on training questions, and what each control would explain."""
    for shown in table.rows:
        evaluation = evaluations.get(shown.label) if shown.is_chosen else None
        if evaluation is not None:
            chosen = dict.fromkeys(rollout.trace.planner for rollout in evaluation.rollouts)
            yield f"{shown.label}: {', '.join(chosen)}, chosen on training questions."
            own = evaluations.get(shown.entry.row) if shown.control == "self-consistency" else None
            capped = any(planner.endswith(f":{MAX_SAMPLES}") for planner in chosen)
            if own is not None and capped and own.cost_usd > evaluation.cost_usd * (1 + 1 / MAX_SAMPLES):
                yield (
                    f"{shown.label}: its vote is limited to {MAX_SAMPLES} answers, so it costs "
                    f"{share_text(evaluation.cost_usd / own.cost_usd, 0)} % of what {shown.entry.row} costs."
                )
        if shown.rules_out:
            yield f"{shown.label}: if this row is as accurate, {shown.rules_out}."


def _on_training(table: SuiteTable, results: AnswerFiles) -> Iterator[str]:
    """How many training questions of each pool are left out of all choices."""
    files_of: dict[PoolEntry | None, list[SeedAnswersFile]] = defaultdict(list)
    for row in table.training:
        files_of[row.entry.pool] += row.files
    for files in files_of.values():
        if left_out := len(results.without_verdict(file.key for file in files)):
            yield (
                f"{left_out} of {files[0].answers} training questions are left out of choices, since the grader "
                "could not judge an answer of some worker."
            )


def _on_seeds(table: SuiteTable, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    for shown in table.rows:
        if not shown.by_seed or shown.label not in evaluations:
            continue
        by_seed: dict[str, list[Rollout]] = defaultdict(list)
        for rollout in evaluations[shown.label].rollouts:
            by_seed[seed_of(rollout)].append(rollout)
        shares = (share_text(accuracy(rollouts), 1) for rollouts in by_seed.values())
        yield f"{shown.label}: each seed has a checkpoint of its own; they are right on {', '.join(shares)} %."


def share_text(share: float | None, decimals: int) -> str:
    """A share in percent. A dash if the grader could judge no answer."""
    return "–" if share is None else f"{100 * share:.{decimals}f}"


def _on_looks(table: SuiteTable) -> list[str]:
    looks = () if table.look_log is None else table.look_log.looks(table.settings.split)
    known = any(look.config == table.config for look in looks)
    return [describe_looks(looks, table.config)] if known else []
