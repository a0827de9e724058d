"""Random plans for the supervised stage of a chat model: their form is right, and their choices are random.

Choices must not be taught before reinforcement finds them. So workers, number of steps, topology and wording are drawn
without reading the question. In every plan, the last step needs each other step, a worker that needs responses sees
some, a worker that runs programs and sees a model's step sees one that was told to write a program, a check follows
something to check, and the last step asks for the whole answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Literal

from podium.types import Profile
from podium.workflow import Access, AccessRule, Step, Workflow

StepRole = Literal["start", "middle", "end", "tool"]
"""The role of a step in its plan. "start" sees no response, "middle" sees some, "end" is the last step and sees some,
and "tool" is a tool's step."""


def _phrases(*parts: Sequence[str]) -> tuple[str, ...]:
    return tuple("".join(words) for words in product(*parts))


_HOW = (
    ".",
    ". Work step by step.",
    ". Be brief.",
    ". Show each step in a line of its own.",
    ". Take nothing for granted.",
    ". State what you assume.",
    ". Say how sure you are.",
)
_ANSWER = (
    "",
    " End with the final answer alone.",
    " Give the answer in the form that the question asks for.",
)
_PROGRAM = (
    " with a Python program that prints only the answer.",
    " by writing a short Python program; it prints the final answer and nothing else.",
    ": write Python code that computes it and prints the result.",
)
_SOLVE = (
    "Answer the question",
    "Solve this",
    "Work out the answer",
    "Find the answer",
    "Give your own solution",
)
_PREPARE = (
    "List the facts that matter",
    "Say what is asked, and in which form",
    "Make a plan, and do not carry it out",
    "Do the first part of the work alone",
    "Name what could go wrong",
    "Put the question in your own words",
    "Give a rough estimate first",
)
_GO_ON = (
    "Go on from the work shown",
    "Carry out the plan shown",
    "Do the next part, with what is shown",
    "Solve it in another way than shown",
)
_CHECK = (
    "Check the work shown and mend it",
    "Look for a mistake in what is shown",
    "Say which of the responses shown is right, and why",
)
_FINISH = (
    "Compare the answers shown and give the best one",
    "Write the final answer from the work shown",
    "Check the work shown, and give the whole answer",
    "Finish the work and answer the question",
    "Join what is shown to one complete answer",
    "If the answer shown is wrong, correct it; give the whole answer",
)
PROGRAM_WORDINGS: dict[StepRole, tuple[str, ...]] = {
    "start": _phrases(_SOLVE, _PROGRAM),
    "middle": _phrases(("Carry out what is shown", "Check what is shown"), _PROGRAM),
}
"""Subtasks that ask for a program."""
WORDINGS: dict[StepRole, tuple[tuple[str, ...], ...]] = {
    "start": (_phrases(_SOLVE, _HOW, _ANSWER), PROGRAM_WORDINGS["start"], _phrases(_PREPARE, _HOW)),
    "middle": (_phrases(_GO_ON, _HOW), _phrases(_CHECK, _HOW), PROGRAM_WORDINGS["middle"]),
    "end": (_phrases(_FINISH, _HOW, _ANSWER),),
    "tool": (
        ("Use what is shown.", "Take the responses shown.", "Give the result.", "Run on what is shown."),
    ),
}
"""Kinds of subtasks by the role of their step. All kinds are equally likely, whatever the number of their wordings. No
subtask names a kind of question. If a plan has only one step, its role is "start"."""

_THOUGHTS: tuple[Callable[[Sequence[str]], str], ...] = (
    lambda steps: ", then ".join(steps) + ".",
    lambda steps: f"{len(steps)} {'step' if len(steps) == 1 else 'steps'}: {', '.join(steps)}.",
    lambda steps: (
        f"{steps[0]} alone." if len(steps) == 1 else f"{steps[0]} begins, then {', '.join(steps[1:])}."
    ),
    lambda steps: f"{', '.join(steps)}. The answer is that of {steps[-1]}.",
)
"""Thoughts that name all steps in order, each by its number and its worker ("0 ada"), since a small model copies names
and numbers better than it counts."""


def random_plan(
    random: Random, pool: Sequence[Profile], *, max_steps: int, access: AccessRule = "lists"
) -> Workflow:
    """A plan of the first round. First the number of steps is drawn evenly, then what each step reads and its worker,
    then its subtask."""
    count = random.randint(1, max_steps)
    free = [number for number, profile in enumerate(pool) if not profile.requires_earlier_responses]
    seen = _topology(random, count, access)
    workers = [
        random.randrange(len(pool)) if reads else random.choice(free or range(len(pool))) for reads in seen
    ]
    programs = set()
    for worker, reads in zip(workers, seen, strict=True):
        writers = [step for step in reads if workers[step] in free]
        if pool[worker].runs_programs and writers:
            programs.add(random.choice(writers))
    steps = []
    for position, (worker, reads) in enumerate(zip(workers, seen, strict=True)):
        role = _role(position, count, bool(reads), pool[worker].requires_earlier_responses)
        kind = PROGRAM_WORDINGS[role] if position in programs else random.choice(WORDINGS[role])
        # A step that sees everything says "all", since a small model does not count the steps that it has written.
        sees = Access(all=True) if len(reads) == position > 0 else Access(steps=reads)
        steps.append(Step(worker, random.choice(kind), sees))
    return Workflow(tuple(steps))


def random_thought(random: Random, names: Sequence[str]) -> str:
    """A thought that fits a plan whose steps are taken by these workers, in order."""
    return random.choice(_THOUGHTS)([f"{number} {name}" for number, name in enumerate(names)])


def _role(position: int, count: int, reads: bool, tool: bool) -> StepRole:
    if tool:
        return "tool"
    if not reads:
        return "start"
    return "end" if position == count - 1 else "middle"


def _topology(random: Random, count: int, access: AccessRule) -> list[tuple[int, ...]]:
    """What each step sees, such that the last step needs all. A chain, a join and a random graph are equally likely."""
    shape = random.choice(("chain", "join", "any"))
    seen: list[tuple[int, ...]] = []
    for position in range(count):
        last = position == count - 1
        before = tuple(range(position))
        if access == "all_or_none":
            sees_all = last or shape == "chain" or (shape == "any" and random.random() < 0.5)
            seen.append(before if sees_all else ())
        elif last or shape == "chain":
            unread = {step for step in before if not any(step in reads for reads in seen)}
            further = random.sample(before, random.randint(0, position)) if shape == "any" else ()
            seen.append(tuple(sorted(unread.union(further))))
        elif shape == "join":
            seen.append(())
        else:
            seen.append(tuple(sorted(random.sample(before, random.randint(0, position)))))
    return seen
