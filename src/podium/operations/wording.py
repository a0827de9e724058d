"""Wording a problem: the clause of each hop, and the question around them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from podium.operations.kinds import KINDS
from podium.operations.operation import Operation
from podium.operations.problem import Hop, Problem
from podium.operations.reading import REFERENCES

_SINGLE = ("{}.", "Please {}.", "What do you get if you {}?", "Your task: {}.", "{} and report the outcome.")
_CHAIN = (
    ("", ". Then ", ". Finally ", ". What do you get?"),
    ("First ", "; next ", "; last, ", ". Give the final result."),
    ("What comes out if you ", ", then ", ", and then ", "?"),
    ("Take these steps in turn: ", "; ", "; ", ". Report what you end with."),
)
"""Before the first clause, between clauses, before the last, after the last."""
_BRANCH = (
    "Let {} be what you get if you ",
    "Write {} for what comes out when you ",
    "{} is what you have if you ",
)


def word_clause(operation: Operation, values: Sequence[str], number: int | None, rng: Random) -> str:
    """One request, with `values` as they stand in the sentence."""
    slots = dict(zip("xy", values, strict=False))
    return rng.choice(operation.phrasings).format(**slots, n=number)


def word_question(problem: Problem, rng: Random) -> str:
    """A question that poses `problem`, in one of many wordings."""
    join = next((i for i, hop in enumerate(problem.hops) if len(hop.sources) == 2), None)
    if join is None:
        worded = [_word_hop(hop, rng) for hop in problem.hops]
        return _sentence(_chain(worded, rng))
    labels = dict(zip(problem.hops[join].sources, "AB", strict=True))
    frame, text, branch = rng.choice(_BRANCH), "", ""
    for position, hop in enumerate(problem.hops[:join]):
        branch += (" and then " if branch else "") + _word_hop(hop, rng)
        if position in labels:
            text += frame.format(labels[position]) + branch + ". "
            branch = ""
    rest = [_word_hop(problem.hops[join], rng, labels)]
    rest += [_word_hop(hop, rng) for hop in problem.hops[join + 1 :]]
    return _sentence(text) + _sentence(_chain(rest, rng))


def _word_hop(hop: Hop, rng: Random, labels: dict[int, str] | None = None) -> str:
    values = []
    for kind, source in zip(hop.operation.takes, hop.inputs, strict=True):
        if isinstance(source, int):
            values.append(labels[source] if labels else rng.choice(REFERENCES))
        else:
            values.append(KINDS[kind].literal.format(source))
    return word_clause(hop.operation, values, hop.number, rng)


def _chain(worded: list[str], rng: Random) -> str:
    if len(worded) == 1:
        return rng.choice(_SINGLE).format(worded[0])
    first, between, last, end = rng.choice(_CHAIN)
    return first + between.join(worded[:-1]) + last + worded[-1] + end


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
