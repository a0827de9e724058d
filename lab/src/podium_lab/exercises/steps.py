"""Steps of plans over the made-up world, as workers see them: subtasks, responses, and which steps are shown.

`lessons` makes lessons of them.
"""

from __future__ import annotations

from random import Random

from podium.workers.view import EarlierStep, WorkerView
from podium_lab.world import RELATIONS, Path, Relation, World, fact_sentence, phrase
from podium_lab.world.schema import FIELDS, relations_of
from podium_lab.world.wording import named

_FIND = ("Find {x}.", "Look up {x}.", "What is {x}?", "Give {x}.", "Say {x}.", "Name {x}.")
_MAX_STEPS = 6
_UNKNOWN = "I do not know {x}."


def ask(path: Path, reference: str | None, rng: Random) -> str:
    """A subtask that asks for the value of a path.

    Args:
        reference: the words for the thing that the path begins at, such as "the result of step 0". Default: its name.
    """
    words = named(path.thing, RELATIONS[path.relations[0]].field) if reference is None else reference
    for name in path.relations[:-1]:
        words = phrase(RELATIONS[name], words, rng)
    if rng.random() < 0.3:
        return path.last.ask.replace("the {x}", "{x}").format(x=words)
    return rng.choice(_FIND).format(x=phrase(path.last, words, rng))


def state_fact(relation: Relation, thing: str, value: str) -> str:
    """What somebody says of one fact, rightly or wrongly."""
    return f"{fact_sentence(relation, thing, value)}\nAnswer: {value}"


def truth(path: Path, facts: World) -> str:
    """What somebody who knows all of it says of a path."""
    values = path.values(facts)
    hops = zip(path.relations, (path.thing, *values), values, strict=False)
    sentences = " ".join(fact_sentence(RELATIONS[name], thing, value) for name, thing, value in hops)
    return f"{sentences}\nAnswer: {values[-1]}"


def unknown(relation: Relation, thing: str) -> str:
    """What a worker says of a fact that it was taught not to know."""
    return _UNKNOWN.format(x=phrase(relation, named(thing, relation.field), Random(0)))


class EarlierSteps:
    """The steps that a later step sees: some plans number their subtasks, and a step may be missing."""

    def __init__(self, rng: Random, facts: World) -> None:
        self.steps: list[EarlierStep] = []
        self._rng, self._facts = rng, facts
        self._numbered = rng.random() < 0.5
        self._position = 0

    def add(self, subtask: str, response: str) -> None:
        """A step that is seen; now and then after one that is not."""
        self._position += self._rng.random() < 0.15
        self.steps.append(EarlierStep(self._position, self._worded(subtask), response))
        self._position += 1

    def add_others(self, share: float) -> None:
        """Steps that have nothing to do with the subtask, as many as `share` lets follow one another."""
        while self._rng.random() < share and self._position < _MAX_STEPS:
            field = self._rng.choice(FIELDS)
            relation = self._rng.choice(relations_of(field))
            hop = Path(self._rng.choice(self._facts.things[field]), (relation.name,))
            self.add(ask(hop, None, self._rng), truth(hop, self._facts))

    def view(self, question: str, subtask: str) -> WorkerView:
        """What the next step is shown."""
        return WorkerView(question, self._worded(subtask), tuple(self.steps))

    def _worded(self, subtask: str) -> str:
        return f"{self._position}. {subtask}" if self._numbered else subtask
