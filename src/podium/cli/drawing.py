"""Draws traces and plans as a tree of rounds and steps: what each worker saw and answered, tokens, dollars, seconds.

Draws with `rich`, for a terminal or a pipe. It makes texts printable first, and never reads them as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from podium.cli.printable import counted, dollars, priced, printable, seconds, shorten
from podium.recordings import names_conditioned
from podium.trace import Attempt, Plan, RoundTrace, Span, Trace
from podium.types import Profile
from podium.workflow import Workflow, needed_steps, topology

_SUBTASK, _RESPONSE, _PLAN = 240, 320, 400
"""Characters shown of a text, unless the drawing is full."""
_COLOURS = {
    "ok": "green",
    "done": "green",
    "degraded": "yellow",
    "refused": "yellow",
    "failed": "red",
    "cancelled": "red",
    "skipped": "dim",
}


def print_trace(trace: Trace, console: Console, *, full: bool = False) -> None:
    """Print the drawing and then the answer, uncut and with its own line breaks alone.

    Args:
        full: show texts uncut, the planner's prompt, the messages to each worker, thoughts and parameters.
    """
    console.print(draw_trace(trace, full=full))
    console.print()
    if trace.status == "degraded" and trace.error:
        console.print(Text(f"Degraded: {printable(trace.error)}", "yellow"))
    if trace.answer is None:
        console.print(Text("No answer", "bold red"))
        return
    console.print(Text("Answer", "bold"))
    console.print(Text(printable(trace.answer).strip(), "bold green"), soft_wrap=True)


def draw_trace(trace: Trace, *, full: bool = False) -> RenderableType:
    """How a question was answered: everything but the answer itself."""
    parts: list[RenderableType] = [
        Text.assemble(("Question  ", "bold"), printable(trace.question.text).strip()),
        Text(_totals(trace), style="dim"),
    ]
    recorded = sum(span.recorded is not None and not names_conditioned(span.recorded) for span in trace.spans)
    if recorded:
        given = f"{counted(recorded, 'response')}, given to the bare question beforehand"
        parts.append(Text(f"Recorded: {given}.", "yellow"))
    if (outcome := trace.outcome) is not None:
        verdict = "" if outcome.right is None else outcome.verdict + (": " if outcome.note else "")
        colour = "green" if outcome.right else "red"
        parts.append(Text.assemble(("Outcome   ", "bold"), (verdict, colour), printable(outcome.note)))
    for number, round_ in enumerate(trace.rounds):
        parts += [Text(), _draw_round(number, round_, trace, full)]
    return Group(*parts)


def draw_workflow(workflow: Workflow, pool: Sequence[Profile], notes: Sequence[str] = ()) -> RenderableType:
    """A plan that was not run; `notes` has one line for each step, such as its estimated cost."""
    tree = Tree(
        Text(f"Plan: {counted(len(workflow.steps), 'step')}, {topology(workflow)}", "bold"), guide_style="dim"
    )
    needed = needed_steps(workflow)
    for position, step in enumerate(workflow.steps):
        label = Text.assemble((f"{position} {printable(pool[step.worker].name)}", "bold"))
        if position not in needed:
            label.append("  skipped", _COLOURS["skipped"])
        label.append(f"\n{shorten(step.subtask, _SUBTASK)}")
        label.append(f"\n{_describe_input(workflow.reads(position), step.access.previous)}", "dim")
        if notes:
            label.append(f"\n{notes[position]}", "dim")
        tree.add(label)
    return tree


def _totals(trace: Trace) -> str:
    about = "about " if trace.usage.estimated else ""
    spared = sum(span.spent.saved_usd for span in trace.spans)
    saved = f" ({dollars(spared)} saved by the cache)" if spared else ""
    return (
        f"{trace.id[:8]}  {trace.status}, planned by {printable(trace.planner)}, "
        f"{counted(trace.calls, 'call')}, {about}{counted(trace.usage.tokens, 'token')}, "
        f"{priced(trace.cost_usd, trace.unpriced)}{saved}, {seconds(trace.seconds)} by the clock"
    )


def _draw_round(number: int, round_: RoundTrace, trace: Trace, full: bool) -> RenderableType:
    plan, workflow = round_.plan, round_.workflow
    title = Text(f"Round {number + 1}" if len(trace.rounds) > 1 else "Plan", "bold")
    if workflow is not None:
        title.append(f": {counted(len(workflow.steps), 'step')}, {topology(workflow)}")
    elif round_.accepted:
        at = plan.accepted_step
        which = "the answer so far" if at is None else f"the response of step {at[1]} in round {at[0] + 1}"
        title.append(f": accepted {which}")
    spent = f", {_tokens_and_price(plan)}" if plan.spent.usage.tokens else ""
    title.append(f"  planned in {seconds(plan.seconds)}{spent}{_attempts(plan.attempts)}", "dim not bold")
    if plan.edited:
        title.append(", then edited by the user", "yellow not bold")
    tree = Tree(title, guide_style="dim")
    if full:
        for message in plan.messages:
            content = printable(message.content)
            tree.add(Text.assemble((f"prompt, {message.role}: ", "dim bold"), (content, "dim")))
    for rejected in plan.rejected:
        label = Text.assemble(("Rejected plan", "bold yellow"), (f"  {_tokens_and_price(rejected)}", "dim"))
        label.append(f"\n{_cut_unless_full(rejected.text, _PLAN, full)}", "dim")
        if full and rejected.reasoning:
            label.append("\n").append(_draw_thought(rejected.reasoning))
        tree.add(label.append(f"\n{printable(str(rejected.decision))}", "red"))
    if full and plan.reasoning:
        tree.add(_draw_thought(plan.reasoning))
    if full or round_.error is not None or (workflow is not None and not round_.spans):
        tree.add(Text(_cut_unless_full(plan.text, _PLAN, full), "dim"))
    if round_.error is not None:
        tree.add(Text(printable(str(round_.error)), "red"))
    if plan.reason is not None:
        tree.add(Text(printable(plan.reason), "yellow"))
    shown = (len(plan.visible_responses) or 1) if number else 0
    for span in round_.all_spans:
        steps = () if workflow is None or span in round_.abandoned else workflow.steps
        sees = span.position < len(steps) and steps[span.position].access.sees_previous
        tree.add(_draw_span(span, shown if sees else 0, full))
    return tree


def _tokens_and_price(plan: Plan) -> str:
    spent = plan.spent
    return f"{counted(spent.usage.tokens, 'token')}, {priced(spent.cost_usd, spent.unpriced)}"


def _draw_thought(reasoning: str) -> Text:
    return Text.assemble(("thought: ", "dim bold"), (printable(reasoning).strip(), "dim italic"))


def _draw_span(span: Span, previous: int, full: bool) -> RenderableType:
    label = Text.assemble((f"{span.position} {printable(span.worker)}", "bold"))
    if span.status != "done":
        label.append(f"  {span.status}", _COLOURS[span.status])
    if span.answered_by not in (None, span.worker):
        label.append(f"  answered by {printable(span.answered_by or '')}", "yellow")
    label.append(f"\n{_cut_unless_full(span.subtask, _SUBTASK, full)}")
    limit = "" if span.max_tokens is None else f", may write {counted(span.max_tokens, 'token')}"
    label.append(f"\n{_describe_input(span.reads, previous)}{limit}", "dim")
    if full:
        for message in span.messages:
            label.append(f"\n{message.role}: ", "dim bold").append(printable(message.content), "dim")
        if span.reply is not None and span.reply.parameters is not None:
            sent = json.dumps(span.reply.parameters, ensure_ascii=False)
            label.append("\nparameters: ", "dim bold").append(printable(sent), "dim")
        if span.reply is not None and span.reply.reasoning:
            label.append("\n").append(_draw_thought(span.reply.reasoning))
    if span.response is not None:
        response = _cut_unless_full(span.response, _RESPONSE, full)
        label.append("\n→ ", _COLOURS["done"]).append(response, "cyan")
    if span.error is not None:
        label.append(f"\n{printable(span.error)}", _COLOURS[span.status])
    if span.called:
        label.append(f"\n{_describe_spent(span)}", "dim")
    if span.nested is not None:
        label.append(f"\nled by {printable(span.nested.planner)}:", "dim")
        for line in _team_lines(span.nested, "  "):
            label.append(f"\n{line}", "dim")
    return label


def _team_lines(trace: Trace, indent: str) -> Iterator[str]:
    """A line for each step of a team's trace. The steps of a team within it follow under its line."""
    for number, round_ in enumerate(trace.rounds):
        before = f"round {number + 1}, " if len(trace.rounds) > 1 else ""
        for span in round_.spans:
            did = [_describe_spent(span)] if span.called else []
            if span.answered_by not in (None, span.worker):
                did.append(f"answered by {printable(span.answered_by or '')}")
            if span.status != "done" or not span.called:
                did.append(span.status)
            yield f"{indent}{before}{span.position} {printable(span.worker)}: {', '.join(did)}"
            if span.nested is not None:
                yield from _team_lines(span.nested, f"{indent}  ")


def _describe_spent(span: Span) -> str:
    tokens = counted(span.usage.tokens, "token")
    if span.cached:
        once = f"{dollars(span.spent.saved_usd)} and {seconds(span.seconds)} when it was made"
        return f"{tokens}, out of the cache ({once})"
    if doubted := span.usage.implausible:
        tokens += f" (estimated; it reported {doubted})"
    time = seconds(span.seconds) if span.recorded is None else f"recorded as {printable(span.recorded)}"
    return f"{tokens}, {dollars(span.spent.cost_usd)}, {time}{_attempts(span.attempts)}"


def _attempts(attempts: Sequence[Attempt]) -> str:
    """How many tries there were, if there was more than one, and how those ended that failed."""
    kinds = ", ".join(attempt.error_kind for attempt in attempts if attempt.error_kind)
    return f", {len(attempts)} attempts ({kinds})" if kinds and len(attempts) > 1 else ""


def _describe_input(reads: Sequence[int], previous: int) -> str:
    seen = []
    if reads:
        seen.append(f"step{'s' if len(reads) > 1 else ''} {', '.join(map(str, reads))}")
    if previous:
        seen.append("the answer of the round before" if previous == 1 else f"{previous} earlier responses")
    return f"sees the question{' and ' + ' and '.join(seen) if seen else ' alone'}"


def _cut_unless_full(text: str, limit: int, full: bool) -> str:
    return printable(text).strip() if full else shorten(text, limit)
