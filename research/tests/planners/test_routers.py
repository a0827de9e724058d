"""Routers that learn from the text, and the features that others read in it."""

from random import Random

import numpy as np
import pytest

from podium.planners import Committee
from podium.planners.planner import PlanRequest
from podium.types import ANSWER_WHOLE_QUESTION, Profile, Question
from podium.workflow import Step, Workflow
from podium_research.planners.predictors import Method
from podium_research.planners.routers import Router, learn_router, text_features

THINGS = ("apples", "pears", "boats", "lamps", "stones", "birds", "coins", "books")
NAMES = ("ada", "bob")


def of_kind(kind: int, random: Random) -> str:
    one, other = random.sample(THINGS, 2)
    if kind == 0:
        return f"How many {one} and {other} remain when {random.randint(2, 99)} are added to the sum?"
    return f"Write the letters of {one} backwards and then spell {other} aloud, please."


def made(count: int, name: str) -> tuple[list[str], list[int]]:
    """Texts, and the number of the worker who alone answers each rightly."""
    random = Random(name)
    kinds = [random.randrange(2) for _ in range(count)]
    return [of_kind(kind, random) for kind in kinds], kinds


@pytest.mark.parametrize("method", ["ridge", "neighbours"])
def test_router_learns_which_worker_answers_which_kind_of_question(method: Method) -> None:
    texts, kinds = made(60, "known")
    choose = learn_router(method, texts, np.eye(2)[kinds], NAMES)
    unseen, wanted = made(40, "unseen")
    chosen = [choose(text) for text in unseen]
    assert chosen == [NAMES[kind] for kind in wanted]
    assert [choose(text) for text in unseen] == chosen


@pytest.mark.parametrize("method", ["ridge", "neighbours"])
def test_a_few_questions_and_one_worker_are_enough(method: Method) -> None:
    choose = learn_router(method, ["One?", "Two?"], np.asarray([[1.0], [0.0]]), ("ada",))
    assert choose("Three?") == "ada"


def test_router_with_few_neighbours_recognises_a_rare_kind() -> None:
    rare, often = "Spell it backwards aloud.", [f"Add {n} apples to the sum." for n in range(30)]
    scores = np.asarray([[0.0, 1.0]] * 2 + [[1.0, 0.0]] * 30)
    near = learn_router("neighbours", [f"{rare} Now.", f"{rare} Then.", *often], scores, NAMES, neighbours=2)
    assert (near(f"{rare} Please."), near("Add 77 apples to the sum.")) == ("bob", "ada")


def test_features_have_length_one_and_a_constant_besides() -> None:
    for text in ("", "One word", "ONE  word", "A longer text of many more words than that"):
        x = text_features(text)
        assert x.shape == (64,)
        assert x[-1] == 1.0
        assert np.linalg.norm(x[:-1]) == pytest.approx(float(bool(text)))
    assert text_features("One word").tolist() == text_features("ONE  word").tolist()


async def test_a_chosen_worker_gets_the_whole_question() -> None:
    planner = Router(lambda text: "a" if len(text) < 5 else Committee(("b",)), "by-length")
    for text, worker in (("What is 6 times 7?", 0), ("6?", 1)):
        request = PlanRequest(Question(text=text), (Profile(name="b"), Profile(name="a")))
        assert (await planner.plan(request)).decision == Workflow((Step(worker, ANSWER_WHOLE_QUESTION),))
