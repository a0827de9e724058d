"""Draws why a question got its answer, for `podium traces show`: the planner's reason, ratings, one worker alone."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podium.cli.printable import dollars, plan_price, printable, shorten
from podium.trace.explanation import Explanation, SingleWorker

_REASON = 400
"""Characters shown of the planner's reason, unless the drawing is full."""


def draw_explanation(explanation: Explanation, *, full: bool = False) -> RenderableType:
    """Every figure stands with its source. What the trace cannot tell is left out."""
    parts: list[RenderableType] = [Text("Why this answer", "bold")]
    if explanation.reason is not None:
        reason = printable(explanation.reason) if full else shorten(explanation.reason, _REASON)
        parts.append(Text.assemble(("The planner wrote: ", "dim"), reason))
    if explanation.ratings:
        parts.append(_ratings(explanation))
    if explanation.single is not None:
        cost = plan_price(explanation.cost_usd, explanation.unpriced)
        parts += [Text(f"The team cost {cost}, planning included."), *_alone("Alone", explanation.single)]
    if explanation.runner_up is not None:
        parts += _alone("Next", explanation.runner_up)
    return Group(*parts) if len(parts) > 1 else Group()


def _ratings(explanation: Explanation) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("rated worker", "right", "an answer", "measured questions of this kind"):
        table.add_column(heading)
    for rated in explanation.ratings:
        table.add_row(
            Text(printable(rated.worker)),
            f"{rated.accuracy:.0%}",
            dollars(rated.cost_usd),
            Text(f"{rated.questions:,} ({printable(rated.kind)})"),
        )
    return table


def _alone(title: str, single: SingleWorker) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text.assemble((f"{title}: {printable(single.worker)}. ", "bold"), single.choice)
    ]
    if single.cost_usd is not None:
        lines.append(
            _line(f"It would have cost about {dollars(single.cost_usd.value)}.", single.cost_usd.source)
        )
    if single.measured_usd is not None:
        lines.append(
            _line(f"{dollars(single.measured_usd.value)} a measured answer.", single.measured_usd.source)
        )
    if single.accuracy is not None:
        lines.append(_line(f"{single.accuracy.value:.0%} likely right.", single.accuracy.source))
    return lines


def _line(figure: str, source: str) -> Text:
    return Text.assemble(f"  {figure} ", (printable(source), "dim"))
