"""Single questions in the report of a suite: where a planner wins and loses, the shapes of its plans, what failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from podium.evals.comparison_table import percent
from podium.evals.evaluation import Evaluation, accuracy
from podium.evals.markup import SafeHtml, data_table, fragment, prose, table_row, tag
from podium.rollout import Rollout
from podium.trace import Span
from podium.workflow import needed_steps, topology

_SHOWN = 3


def wins_and_losses(first: str, single: str, evaluations: Mapping[str, Evaluation]) -> SafeHtml:
    """The questions on which the first planner is right and a single worker wrong, and the other way round."""
    ours, theirs = evaluations[first], evaluations[single]
    ahead = {task: share - theirs.right[task] for task, share in ours.right.items() if task in theirs.right}
    won = sorted((task for task in ahead if ahead[task] > 0), key=lambda task: -ahead[task])
    lost = sorted((task for task in ahead if ahead[task] < 0), key=lambda task: ahead[task])

    def pair(task: str) -> SafeHtml:
        # If a question has several answers, show a pair that differs.
        wins = ahead[task] > 0
        our, their = _with(ours.by_question[task], wins), _with(theirs.by_question[task], not wins)
        return _question((first, our), (single, their))

    title = (
        f"On {len(ahead):,} questions {first} is right more often than {single} on {len(won):,} and less often on "
        f"{len(lost):,}. Shown are the clearest ones, and of equal ones the first."
    )
    return fragment(
        tag("h3", f"Where {first} wins and loses against the best single worker"),
        tag("p", title, class_="note"),
        _folded(f"{first} wins: {len(won):,}", map(pair, won[:_SHOWN])) if won else "",
        _folded(f"{first} loses: {len(lost):,}", map(pair, lost[:_SHOWN])) if lost else "",
    )


def _with(rollouts: Sequence[Rollout], correct: bool) -> Rollout:
    judged = [rollout for rollout in rollouts if rollout.grade.failure is None]
    return next((rollout for rollout in judged if rollout.correct == correct), judged[0])


def _folded(summary: str, content: Iterator[SafeHtml]) -> SafeHtml:
    return tag("details", tag("summary", summary), content)


def _question(*sides: tuple[str, Rollout]) -> SafeHtml:
    _, first = sides[0]
    return tag(
        "div",
        tag("p", first.trace.question.text, class_="question"),
        tag("p", f"{first.task} · right answer: {first.gold}", class_="note"),
        tag("div", (_side(label, rollout) for label, rollout in sides), class_="sides"),
        class_="example",
    )


def _side(heading: str, rollout: Rollout) -> SafeHtml:
    """The first plan of a rollout as it was run, with its responses and grade."""
    trace = rollout.trace
    first = trace.rounds[0] if trace.rounds else None
    error = (str(first.error or "") if first else None) or trace.error
    answer = rollout.grade.found or trace.answer
    verdict = (
        tag("span", "right", class_="right") if rollout.correct else tag("span", "wrong", class_="wrong")
    )
    return tag(
        "div",
        tag("h3", heading),
        tag("ol", map(_step, first.spans if first else ()), class_="steps", start=0),
        tag("p", error, class_="wrong") if error else "",
        tag(
            "p",
            f"Answer: {'none' if answer is None else answer} · ",
            verdict,
            f" · ${trace.uncached_usd:.6f}",
        ),
    )


def _step(span: Span) -> SafeHtml:
    seen = f"sees {', '.join(map(str, span.reads))}" if span.reads else ""
    about = " · ".join(part for part in (seen, "" if span.status == "done" else span.status) if part)
    response = span.response or span.error
    return tag(
        "li",
        tag("b", span.worker),
        f" · {span.subtask} ",
        tag("span", about, class_="soft"),
        tag("div", response, class_="response") if response else "",
    )


def examples(after: str, before: str, evaluations: Mapping[str, Evaluation]) -> SafeHtml:
    """The first questions, with the plans of a Conductor before and after its training."""
    trained, untrained = evaluations[after].by_question, evaluations[before].by_question
    return fragment(
        tag("h3", "Plans before and after training"),
        tag("p", "The first held-out questions, not selected by hand.", class_="note"),
        (
            _question(("Before training", untrained[task][0]), ("After training", trained[task][0]))
            for task in list(trained)[:_SHOWN]
        ),
    )


def topologies(label: str, evaluation: Evaluation) -> SafeHtml:
    """The shapes of a planner's first plans: how frequent, how often right, how expensive, and one example each."""
    by_shape: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in evaluation.rollouts:
        workflow = rollout.trace.rounds[0].workflow if rollout.trace.rounds else None
        if workflow is not None:
            steps = len(needed_steps(workflow))
            by_shape[f"{topology(workflow)}, {steps} step{'s' * (steps != 1)}"].append(rollout)
    total = sum(map(len, by_shape.values()))
    ordered = sorted(by_shape.items(), key=lambda item: -len(item[1]))

    def line(shape: str, rollouts: Sequence[Rollout]) -> SafeHtml:
        right = accuracy(rollouts)
        usd = sum(rollout.trace.uncached_usd for rollout in rollouts) / len(rollouts)
        share = percent(len(rollouts) / total)
        return table_row(shape, share, "–" if right is None else percent(right), f"{usd * 1000:.3f}")

    return fragment(
        tag("h3", f"Topologies of {label}"),
        data_table(("plan", "share", "right", "$ / 1000"), (line(*shape) for shape in ordered)),
        (
            _folded(f"An example: {shape}", iter([_question((label, example))]))
            for shape, (example, *_) in ordered
        ),
    )


def failures(evaluations: Mapping[str, Evaluation]) -> SafeHtml:
    """What failed in each row, counted by kind, with the first message of each kind."""
    lines = [
        table_row(label, kind, f"{count:,}", prose(example))
        for label, evaluation in evaluations.items()
        for kind, (count, example) in _failed(evaluation).items()
    ]
    shown = data_table(("planner", "what", "times", "the first"), lines)
    return fragment(tag("h3", "What failed"), shown if lines else tag("p", "Nothing failed.", class_="note"))


def _failed(evaluation: Evaluation) -> dict[str, tuple[int, str]]:
    failures = [failure for rollout in evaluation.rollouts for failure in _failures_of(rollout)]
    examples = dict(reversed(failures))
    return {
        kind: (count, examples[kind]) for kind, count in Counter(kind for kind, _ in failures).most_common()
    }


def _failures_of(rollout: Rollout) -> Iterator[tuple[str, str]]:
    for round_ in rollout.trace.rounds:
        if round_.error is not None:
            yield f"plan: {round_.error.kind}", str(round_.error)
    for span in rollout.trace.spans:
        if span.status in ("failed", "refused"):
            yield f"step {span.status}: {span.worker}", span.error or ""
    if rollout.grade.failure is not None:
        yield "not graded", rollout.grade.failure
    elif rollout.trace.answer is None:
        yield "no answer", rollout.trace.error or ""
