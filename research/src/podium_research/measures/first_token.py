"""When the first token of an answer reaches the user."""

from __future__ import annotations

from podium.trace import RoundTrace, Trace


def first_token_s(trace: Trace) -> float | None:
    """Seconds from the question to the first token of its answer, with idle workers, or None if the trace does not
    tell.

    Planning and earlier rounds come first, then the chain of steps that the answering step waits for. If the planner
    accepted the answer in a further round, the user gets it whole when the planner has decided.
    """
    run = [round_ for round_ in trace.rounds if round_.spans]
    if not run or trace.answer is None:
        return None
    planning = sum(round_.plan.seconds for round_ in trace.rounds)
    if trace.rounds[-1].accepted:
        return planning + trace.critical_path_s
    last = run[-1]
    answering = next((span for span in reversed(last.spans) if span.status == "done"), None)
    if answering is None or answering.reply is None or answering.reply.first_token_s is None:
        return None
    earlier = sum(round_.critical_path_s for round_ in run[:-1])
    return planning + earlier + _waiting_s(last, answering.position) + answering.reply.first_token_s


def _waiting_s(round_: RoundTrace, position: int) -> float:
    """Seconds along the slowest chain of steps that this step waits for."""
    spans = {span.position: span for span in round_.spans}
    needed: set[int] = set()
    open_ = [position]
    while open_:
        span = spans[open_.pop()]
        open_ += [
            before for before in (*span.reads, *span.waited) if before not in needed and before in spans
        ]
        needed.update(open_)
    before = tuple(span for span in round_.spans if span.position in needed)
    return round_.model_copy(update={"spans": before}).critical_path_s
