"""A team of workers without any model, and questions that they answer right or wrong by rule.

A question is a chain of sums, whose operations are the skills that it needs. A `Calculator` does each operation right
with the chance of its skill: by a draw that depends on its name, the question and the operation, and for a share of its
calls also on the call's seed, so that a repeat may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import GeneratedTasks, Split, Task
from podium.trace import Reply
from podium.types import Limits, Price, Profile, Question, Usage, estimate_tokens
from podium.workers import Pool, VoteWorker
from podium.workers.base import COSTLESS, Request, Worker

SKILLS = ("plus", "minus", "times", "modulo")
_STEP = re.compile(rf"({'|'.join(SKILLS)}) (\d+)")
_SEEDED = 0.4
"""Share of the calls whose luck depends on the call's seed."""


@dataclass(frozen=True)
class Sums(GeneratedTasks):
    """Questions such as "What is 3, plus 4, times 2?", of 1 to 4 operations."""

    set_name = "sums"

    def draw(self, rng: Random, index: int) -> Task:
        """See `GeneratedTasks`."""
        skills = tuple(rng.choice(SKILLS) for _ in range(rng.randint(1, 4)))
        steps = ", ".join(f"{skill} {rng.randint(2, 99)}" for skill in skills)
        text = f"What is {rng.randint(1, 99)}, {steps}?"
        return Task(
            id=f"{self.name}/{self.seed}/{index}",
            question=Question(text=text),
            gold=str(_results(text)[-1]),
            grader=Exact(),
            facts={"hops": len(skills), "skills": skills},
        )


class Calculator(Worker):
    """Answers `Sums`; to another question it says that it does not know."""

    traits = COSTLESS

    def __init__(
        self, profile: Profile, ability: Mapping[str, float], *, limits: Limits = Limits(retries=0)
    ) -> None:
        self.profile, self.limits = profile, limits
        self._ability = dict(ability)

    async def answer(self, request: Request) -> Reply:
        """All operations of the question, each right or off by one."""
        text = self.reply(request.view.question, request.seed)
        sent = sum(estimate_tokens(message.content) for message in request.messages)
        return Reply(text, Usage(input_tokens=sent, output_tokens=120), latency_s=1.0)

    def reply(self, question: str, seed: str = "") -> str:
        """What it says to a question in the call with this seed."""
        slips, known = 0, _results(question)
        for place, (skill, _) in enumerate(_STEP.findall(question)):
            luck = Random(f"{self.profile.name}/{question}/{place}")
            if luck.random() < _SEEDED:
                luck = Random(f"{self.profile.name}/{question}/{place}/{seed}")
            slips += luck.random() >= self._ability.get(skill, 0.0)
        return f"Answer: {known[-1] + slips}" if known else "I do not know."

    async def close(self) -> None:
        """Nothing to close."""


def calculator(name: str, *good_at: str, price: float = 1.0, rest: float = 0.45) -> Calculator:
    """Good at these skills and less good at the others. `price`: dollars per million output tokens."""
    ability = {skill: 0.97 if skill in good_at else rest for skill in SKILLS}
    skills = ", ".join(good_at) or "everything"
    told = Profile(name=name, description=f"strong at {skills}", price=Price(input=price / 6, output=price))
    return Calculator(told, ability)


def open_team() -> Pool:
    """Four who know one or two skills well, one who is fair at everything, and the vote."""
    return Pool(
        [
            calculator("ada", "plus", "minus", price=6.0),
            calculator("bram", "times", price=6.0),
            calculator("cleo", "modulo", "times", price=6.0),
            calculator("egon", "plus", price=4.0),
            calculator("gus", price=7.0, rest=0.72),
            VoteWorker(),
        ]
    )


def write_sums(path: Path, count: int = 12, splits: Sequence[Split] = ("test",)) -> Path:
    """A table of so many questions of each split, for commands that take a file."""
    rows = (
        {"question": task.question.text, "answer": task.gold, "split": split}
        for split in splits
        for task in Sums(split, size=count)
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def write_calculators(path: Path, tasks: Sequence[Task]) -> Path:
    """The team file of `open_team`, each of whom answers these questions by its rule, and no other; and the vote."""
    tables = []
    for worker in (one for one in open_team() if isinstance(one, Calculator)):
        told = worker.profile
        replies = ", ".join(
            f"{json.dumps(task.question.text)} = {json.dumps(worker.reply(task.question.text))}"
            for task in tasks
        )
        tables.append(
            f'[[worker]]\nname = "{told.name}"\nkind = "scripted"\nprofile = "{told.description}"\n'
            f"replies = {{ {replies} }}\n"
            f"price = {{ input = {told.price.input}, output = {told.price.output} }}\n"
        )
    path.write_text("\n".join((*tables, '[[worker]]\nname = "vote"\nkind = "vote"\n')))
    return path


def write_team(path: Path) -> Path:
    """The team file of ada, who answers 5, and egon, who answers 4 and is cheaper; and the vote."""
    worker = (
        '[[worker]]\nname = "{}"\nkind = "scripted"\nprofile = "strong at {}"\nreplies = {{ "" = "Answer: {}" }}\n'
        "price = {{ input = {}, output = {} }}\n"
    )
    ada, egon = worker.format("ada", "sums", 5, 1.0, 6.0), worker.format("egon", "lists", 4, 0.7, 4.0)
    path.write_text("\n".join((ada, egon, '[[worker]]\nname = "vote"\nkind = "vote"\n')))
    return path


ANSWERS = """
[[worker]]
name = "ada"
kind = "scripted"
replies = { "the whole question" = "2 + 3 = 5\\nAnswer: 5" }
price = { input = 1.0, output = 2.0 }

[[worker]]
name = "eve"
kind = "scripted"
replies = { "the whole question" = { error = "protocol", message = "No text came." } }

[[worker]]
name = "tom"
kind = "scripted"
replies = { "the whole question" = "Answer: 5" }
delay = 600.0
"""


def write_answers(path: Path) -> Path:
    """The team file of ada, who answers 5, eve, who fails, and tom, who takes ten minutes."""
    path.write_text(ANSWERS)
    return path


def _results(question: str) -> list[int]:
    """The value after each operation; empty for another question."""
    found = re.match(r"What is (\d+)", question)
    values = [] if found is None else [int(found.group(1))]
    for skill, number in _STEP.findall(question) if values else ():
        last, other = values[-1], int(number)
        values.append(
            {"plus": last + other, "minus": last - other, "times": last * other, "modulo": last % other}[
                skill
            ]
        )
    return values
