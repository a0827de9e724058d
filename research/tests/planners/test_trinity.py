"""TRINITY's head chooses worker and role in each turn, a verifier ends it, and sep-CMA-ES trains the head."""

import numpy as np
import pytest
from cmaes import SepCMA

from known_answers import known_answers
from planners.planner_teams import answered, called, team
from podium.errors import ConfigError
from podium.planners import open_baseline
from podium.types import Profile
from podium.workers.view import read_view
from podium_research.planners.trinity import Trinity
from podium_research.planners.trinity_head import FEATURES, Evolution, Head, train_head


async def test_turns_follow_the_head_until_a_verifier_accepts():
    pool = team(ada=["Answer: 4", "Not sure. REVISE", "Answer: 5", "ACCEPT, not REVISE? ACCEPT"], bob=[])
    trace = await answered(Trinity(Head.untrained(["ada", "bob"])), pool)
    assert (trace.answer, trace.rounds[-1].plan.accepted_step) == ("Answer: 5", (2, 0))
    last = read_view(pool.named("ada").requests[-1].messages).earlier
    assert [step.response for step in last] == ["Answer: 4", "Not sure. REVISE", "Answer: 5"]


async def test_trinity_answers_in_the_fifth_turn_at_the_latest():
    pool = team(ada=["Answer: 1", "REVISE", "Answer: 2", "REVISE", "Answer: 3"])
    assert (await answered(Trinity(Head.untrained(["ada"])), pool)).answer == "Answer: 3"
    thinks = np.zeros((4, FEATURES))
    thinks[1, -4:] = 1.0
    pool = team(ada=["plan", "plan", "plan", "plan", "Answer: 6"])
    trace = await answered(Trinity(Head.of(["ada"], thinks)), pool)
    assert (trace.answer, called(trace)) == ("Answer: 6", [["ada"]] * 5)


def test_the_head_learns_which_worker_is_right_on_which_questions():
    texts = tuple(f"{'sum of' if k % 2 else 'capital of'} {k}" for k in range(40))
    score_QW = np.array([[float(k % 2), float(1 - k % 2)] for k in range(40)])
    head = train_head(known_answers(("ada", "bob"), texts, score_QW, np.ones((40, 2))))
    unseen = {"sum of 99": "ada", "capital of 98": "bob"}
    assert {text: head.choose(text, None)[0] for text in unseen} == unseen
    assert head.choose("sum of 99", None)[1] == "worker"
    assert head.choose("sum of 99", "worker")[1] == "verifier"


def test_evolution_finds_the_minimum_of_a_stretched_quadratic():
    scale = 10.0 ** np.linspace(0, 2, 6)

    def height(x):
        return float((scale * (x.ravel() - 1) ** 2).sum())

    search = Evolution(np.zeros((2, 3)), population=12, sigma=0.3, seed=4)
    library = SepCMA(np.zeros(6), 0.3, population_size=12, seed=4)
    for _ in range(200):
        search.tell([-height(x) for x in search.ask()])
        tried = [library.ask() for _ in range(12)]
        library.tell([(y, height(y)) for y in tried])
    assert search.mean == pytest.approx(library.mean.reshape(2, 3))
    assert height(search.mean) < 1e-6


def test_a_head_is_read_from_its_file_and_no_other_file(tmp_path):
    pool = [Profile(name="ada")]
    file = tmp_path / "head.json"
    head = Head.untrained(["ada"])
    file.write_text(head.model_dump_json())
    assert open_baseline(f"trinity:{file}", pool).head == head
    for text, why in (
        ("{}", "does not hold a head of TRINITY"),
        ('{"workers": ["ada"], "weights": [[1, 2]]}', "a head of 1 workers needs 4 rows of 68 weights"),
        (Head.untrained(["eve"]).model_dump_json(), "The pool has no worker named 'eve'"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=why):
            open_baseline(f"trinity:{file}", pool)
    with pytest.raises(ConfigError, match="there is no such file"):
        open_baseline("trinity:/no/such", pool)
    with pytest.raises(ConfigError, match="learns from workers' answers"):
        open_baseline("trinity-scored", pool)
