"""RouterDC's losses, a threshold between two workers, Smoothie's choice, sentence-transformers' vectors."""

from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from known_answers import known_answers
from podium.errors import ConfigError
from podium.planners import open_baseline
from podium.planners.planner import BatchPlanner, PlanRequest
from podium.team import Runner
from podium.types import Budget, Profile, Question
from podium.workers import Pool, ScriptedWorker, VoteWorker
from podium.workflow import Workflow
from podium_research.planners.predictors import sentence_vectors
from podium_research.planners.router_dc import loss_and_gradients, others
from podium_research.planners.smoothie import Smoothie, qualities

POOL = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))


def test_the_gradients_of_routerdc_are_those_of_its_loss() -> None:
    rng = np.random.default_rng(0)
    head_DK, worker_TK, x_BD = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(6, 4))
    score_BT = rng.integers(0, 3, size=(6, 5)) / 2
    pairs_PM = others(np.array([0, 0, 0, 1, 1, 2]), rng)
    assert len(pairs_PM) == 5, "a question that is alone in its cluster is drawn to none"
    _, gradients = loss_and_gradients(head_DK, worker_TK, x_BD, score_BT, pairs_PM)
    for parameter, gradient in zip((head_DK, worker_TK), gradients, strict=True):
        for place in np.ndindex(parameter.shape):
            kept, losses = parameter[place], []
            for step in (1e-6, -1e-6):
                parameter[place] = kept + step
                losses.append(loss_and_gradients(head_DK, worker_TK, x_BD, score_BT, pairs_PM)[0])
            parameter[place] = kept
            assert gradient[place] == pytest.approx((losses[0] - losses[1]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(("share", "strong"), [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
async def test_a_threshold_sends_its_share_to_the_strong_worker_where_needed(
    share: float, strong: float
) -> None:
    """The weak worker knows sums; three questions of ten are others."""
    random = Random("threshold")
    texts = [
        f"Prove theorem {k} of the book." if k % 10 < 3 else f"Add {k} and {random.randint(1, 99)}."
        for k in range(100)
    ]
    score_QW = np.array([[float(k % 10 >= 3), 1.0] for k in range(100)])
    scored = known_answers(("ada", "bob"), tuple(texts), score_QW, np.ones((100, 2)))
    router = open_baseline(f"threshold:ada>bob:ridge:{share}", POOL, scored=scored)
    sent = []
    for text in texts:
        plan = await router.plan(PlanRequest(Question(text=text), POOL))
        assert isinstance(plan.decision, Workflow)
        sent.append(POOL[plan.decision.steps[0].worker].name == "bob")
    assert np.mean(sent) == pytest.approx(strong, abs=0.1 * (0 < share < 1))
    if share == 0.3:
        assert np.mean(np.array(sent) == (score_QW[:, 0] == 0)) > 0.95


def topics(seed: str, count: int) -> tuple[list[str], np.ndarray]:
    """Texts of two topics, and whether each is a proof."""
    random = Random(f"threshold/{seed}")
    proofs = np.array([random.random() < 0.5 for _ in range(count)])
    return [
        f"Prove theorem {random.randint(1, 9999)} of the book, step by step."
        if proof
        else f"Add {random.randint(1, 9999)} apples and {random.randint(1, 9999)} apples."
        for proof in proofs
    ], proofs


async def sent_to_bob(name: str, texts: list[str], better_Q: np.ndarray, asked: list[str]) -> np.ndarray:
    """Which of the asked questions a threshold sends to bob, who is better than ada at some training questions."""
    scored = known_answers(
        ("ada", "bob"),
        tuple(texts),
        np.stack([~better_Q, better_Q], axis=1).astype(float),
        np.ones((len(texts), 2)),
    )
    router = open_baseline(name, POOL, scored=scored)
    assert isinstance(router, BatchPlanner)
    router.prefetch(asked)
    sent = []
    for text in asked:
        plan = await router.plan(PlanRequest(Question(text=text), POOL))
        assert isinstance(plan.decision, Workflow)
        sent.append(POOL[plan.decision.steps[0].worker].name == "bob")
    return np.array(sent)


@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize(
    ("method", "count", "share"),
    [
        ("neighbours", 40, 0.2),
        ("ridge", 40, 0.2),
        ("logistic", 40, 0.3),
        ("clusters", 40, 0.3),
        ("clusters", 200, 0.5),
    ],
)
async def test_the_strong_worker_gets_its_share_of_questions_that_are_new(
    method: str, count: int, share: float, noise: float
) -> None:
    texts, proofs = topics("known", count)
    better_Q = proofs ^ (np.random.default_rng(0).random(count) < noise)
    asked, _ = topics("new", 400)
    sent = await sent_to_bob(f"threshold:ada>bob:{method}:{share}", texts, better_Q, asked)
    assert sent.mean() == pytest.approx(share, abs=0.12)


async def test_a_threshold_by_routerdc_learns_where_the_strong_worker_is_better() -> None:
    texts, proofs = topics("known", 10)
    asked, wanted = topics("new", 200)
    sent = await sent_to_bob("threshold:ada>bob:routerdc:0.5", texts, proofs, asked)
    assert sent[wanted].mean() > sent[~wanted].mean() + 0.3


def test_threshold_router_refuses_a_share_above_1_in_one_sentence() -> None:
    scored = known_answers(("ada", "bob"), ("One?",), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(
        ConfigError, match=r"needs the share of questions that go to bob, a number from 0 to 1"
    ):
        open_baseline("threshold:ada>bob:ridge:30", POOL, scored=scored)


def test_an_answers_quality_is_the_papers_formula_pair_by_pair() -> None:
    vector_ND = np.random.default_rng(0).normal(size=(5, 7))
    for i, found in enumerate(qualities(vector_ND)):
        apart = {pair: ((vector_ND[pair[0]] - vector_ND[pair[1]]) ** 2).sum() for pair in np.ndindex(5, 5)}
        pairs = combinations([j for j in range(5) if j != i], 2)
        delta = np.mean([(apart[i, j] + apart[i, k] - apart[j, k]) / 2 for j, k in pairs])
        assert found == pytest.approx(7 / (2 * delta))


async def test_smoothie_ends_with_the_answer_that_is_most_like_the_others() -> None:
    replies = {
        "ada": "The river flows north to the sea. Answer: north",
        "bob": "I believe the river flows north to the cold sea. Answer: to the north",
        "cy": "Bananas are yellow! Answer: 7",
        "di": "The river flows north to the cold sea. Answer: northwards",
    }
    workers = [ScriptedWorker(name, [reply]) for name, reply in replies.items()]
    pool = Pool([*workers, VoteWorker()])
    trace = await Runner(Smoothie(tuple(replies)), pool, budget=Budget(rounds=2)).answer(
        Question(text="Where does the river flow?")
    )
    assert trace.answer == replies["di"]


def test_sentence_transformers_vectors_have_length_1_alike_for_equal_texts(
    tmp_path: Path,
) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an optional extra
    from sentence_transformers.sentence_transformer.modules import BoW  # noqa: PLC0415

    SentenceTransformer(modules=[BoW(vocab=["river", "sum", "word"])]).save(str(tmp_path / "words"))
    found = sentence_vectors(str(tmp_path / "words"))(["a river", "a sum word", "a river"])
    assert found.shape == (3, 3)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert found[0].tolist() == found[2].tolist() == [1.0, 0.0, 0.0]


def test_an_encoder_that_is_not_there_gets_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"'no/such-model' (need|cannot be loaded)"):
        sentence_vectors("no/such-model")
