"""Single questions in the report of a suite: where a planner wins and loses, the shapes of its plans, what failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from podium.evals.charts import Html, fragment, tag
from podium.evals.comparison import example_plan
from podium.evals.evaluation import Evaluation, accuracy
from podium.evals.report import plan_side
from podium.evals.suite.results import GOLD
from podium.evals.table import percent
from podium.rollout import Rollout
from podium.workflow import live_steps, topology

_SHOWN = 3
"""Questions of each sort that are shown."""


def wins_and_losses(first: str, single: str, evaluations: Mapping[str, Evaluation]) -> Html:
    """The questions on which the first planner is right and a single worker wrong, and the other way round."""
    ours, theirs = evaluations[first], evaluations[single]
    ahead = {task: share - theirs.right[task] for task, share in ours.right.items() if task in theirs.right}
    won = [task for task, difference in ahead.items() if difference > 0]
    lost = [task for task, difference in ahead.items() if difference < 0]
    said = (
        f"On {len(ahead):,} questions {first} is right more often than {single} on {len(won):,} and less often on "
        f"{len(lost):,}. Shown are the clearest ones, and of equal ones the first."
    )
    return fragment(
        tag("h3", f"Where {first} wins and loses against the best single worker"),
        tag("p", said, class_="note"),
        _pairs(f"{first} wins", sorted(won, key=lambda task: -ahead[task]), ours, theirs, (first, single)),
        _pairs(f"{first} loses", sorted(lost, key=lambda task: ahead[task]), ours, theirs, (first, single)),
    )


def _pairs(
    heading: str, tasks: Sequence[str], ours: Evaluation, theirs: Evaluation, labels: tuple[str, str]
) -> Html:
    def pair(task: str) -> Html:
        # Of several answers to a question those that differ are shown.
        wins = ours.right[task] > theirs.right[task]
        our, their = _with(ours.by_question[task], wins), _with(theirs.by_question[task], not wins)
        return _question(task, ours, (labels[0], our), (labels[1], their))

    return _folded(f"{heading}: {len(tasks):,}", map(pair, tasks[:_SHOWN])) if tasks else Html("")


def _with(rollouts: Sequence[Rollout], correct: bool) -> Rollout:
    judged = [rollout for rollout in rollouts if rollout.grade.failure is None]
    return next((rollout for rollout in judged if rollout.correct == correct), judged[0])


def _question(task: str, evaluation: Evaluation, *sides: tuple[str, Rollout]) -> Html:
    """A question with the plans that answered it, side by side."""
    gold = evaluation.facts[task].get(GOLD, "")
    return tag(
        "div",
        tag("p", sides[0][1].trace.question.text, class_="question"),
        tag("p", f"{task} · right answer: {gold}", class_="note"),
        tag("div", (plan_side(label, example_plan(rollout)) for label, rollout in sides), class_="sides"),
        class_="example",
    )


def examples(after: str, before: str, evaluations: Mapping[str, Evaluation]) -> Html:
    """The first questions, with the plans of a Conductor before and after its training."""
    trained, untrained = evaluations[after], evaluations[before]
    return fragment(
        tag("h3", "Plans before and after training"),
        tag("p", "The first held-out questions, not selected by hand.", class_="note"),
        (
            _question(
                task,
                trained,
                ("Before training", untrained.by_question[task][0]),
                ("After training", trained.by_question[task][0]),
            )
            for task in list(trained.by_question)[:_SHOWN]
        ),
    )


def _folded(summary: str, content: Iterator[Html]) -> Html:
    return tag("details", tag("summary", summary), content)


def topologies(label: str, evaluation: Evaluation) -> Html:
    """The shapes of a planner's first plans: how frequent, how often right, how dear, and one example each."""
    found: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in evaluation.rollouts:
        workflow = rollout.trace.rounds[0].workflow if rollout.trace.rounds else None
        if workflow is not None:
            steps = len(live_steps(workflow))
            found[f"{topology(workflow)}, {steps} step{'s' * (steps != 1)}"].append(rollout)
    total = sum(map(len, found.values()))
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))

    def line(shape: str, rollouts: Sequence[Rollout]) -> Html:
        right = accuracy(rollouts)
        usd = sum(rollout.trace.uncached_usd for rollout in rollouts) / len(rollouts)
        cells = (
            percent(len(rollouts) / total),
            "–" if right is None else percent(right),
            f"{usd * 1000:.3f}",
        )
        return tag("tr", tag("td", shape), (tag("td", cell) for cell in cells))

    heads = ("plan", "share", "right", "$ / 1000")
    return fragment(
        tag("h3", f"Topologies of {label}"),
        tag(
            "table",
            tag("thead", tag("tr", (tag("th", head) for head in heads))),
            tag("tbody", (line(shape, rollouts) for shape, rollouts in ordered)),
        ),
        (
            _folded(
                f"An example: {shape}",
                iter([_question(rollouts[0].task_id, evaluation, (label, rollouts[0]))]),
            )
            for shape, rollouts in ordered
        ),
    )


def failures(evaluations: Mapping[str, Evaluation]) -> Html:
    """What failed in each row, counted by kind, with the first message of each kind."""
    lines = [
        tag("tr", tag("td", label), tag("td", kind), tag("td", f"{count:,}"), tag("td", said, class_="said"))
        for label, evaluation in evaluations.items()
        for kind, (count, said) in _failed(evaluation).items()
    ]
    if not lines:
        return fragment(tag("h3", "What failed"), tag("p", "Nothing failed.", class_="note"))
    return fragment(
        tag("h3", "What failed"),
        tag(
            "table",
            tag("thead", tag("tr", (tag("th", head) for head in ("planner", "what", "times", "the first")))),
            tag("tbody", lines),
        ),
    )


def _failed(evaluation: Evaluation) -> dict[str, tuple[int, str]]:
    """How often each kind of failure occurred, and its first message."""
    counts: Counter[str] = Counter()
    said: dict[str, str] = {}

    def note(kind: str, message: str) -> None:
        counts[kind] += 1
        said.setdefault(kind, message)

    for rollout in evaluation.rollouts:
        for round_ in rollout.trace.rounds:
            if round_.plan_error is not None:
                note(f"plan: {round_.plan_error_kind}", round_.plan_error)
        for span in rollout.trace.spans:
            if span.status in ("failed", "refused"):
                note(f"step {span.status}: {span.worker}", span.error or "")
        if rollout.grade.failure is not None:
            note("not graded", rollout.grade.failure)
        elif rollout.trace.answer is None:
            note("no answer", rollout.trace.error or "")
    return {kind: (count, said[kind]) for kind, count in counts.most_common()}
