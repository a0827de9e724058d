"""Planners that give workers roles: what each worker sees, and when a planner stops."""

import pytest

from planners.planner_teams import answered, called, team
from podium.team import Runner
from podium.types import ANSWER_WHOLE_QUESTION, Budget, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium_research.planners.debate import REVISE, Debate
from podium_research.planners.rectify import RETRY, RectifyOrReject, counts_as_finding
from podium_research.planners.refiner import REFINE, VERIFY, GeneratorVerifierRefiner
from podium_research.planners.self_refine import SelfRefine

FINDING = '{"suggestion": "Add 1.", "is_flawed": true, "answer_changes": true}'
FINE = '{"suggestion": "", "is_flawed": false, "answer_changes": false}'


def seen(pool, worker):
    """The responses that each call of a worker was shown."""
    return [[step.response for step in request.view.earlier] for request in pool.named(worker).requests]


class Auditor(ScriptedWorker):
    """Finds one fault in each answer of `wrong`."""

    def __init__(self, *wrong):
        super().__init__("cy", [])
        self._wrong = wrong

    def _next_reply(self, request):
        (shown,) = request.view.earlier
        return FINDING if shown.response in self._wrong and "misreads" in request.view.subtask else FINE


async def test_self_refine_stops_when_nothing_has_to_change():
    pool = team(ada=["v1", "Too short.", "v2", "Fine.\nNo changes needed.", "never"])
    trace = await answered(SelfRefine("ada", 4), pool)
    assert trace.answer == "v2"
    assert seen(pool, "ada") == [[], ["v1"], ["v1", "Too short."], ["v2"]]


async def test_self_refine_ends_with_its_last_version_uncriticised():
    pool = team(ada=["v1", "No.", "v2", "No changes needed in line 1, but no.", "v3"])
    trace = await answered(SelfRefine("ada", 2), pool)
    assert (trace.answer, called(trace)) == ("v3", [["ada", "ada"], ["ada", "ada"], ["ada"]])
    assert (await answered(SelfRefine("ada", 2), team(ada=["v1"]), rounds=1)).answer == "v1"


async def test_a_spent_budget_ends_with_the_latest_version():
    pool = team(ada=["v1", "No.", "v2", "No.", "v3"])
    budget = Budget(calls=4, rounds=5)
    trace = await Runner(SelfRefine("ada", 3), pool, budget=budget).answer(Question(text="How many?"))
    assert (trace.answer, len(pool.named("ada").requests)) == ("v2", 4)


async def test_three_chains_of_generator_verifier_and_refiner_are_voted_on():
    pool = team(gen=["g1", "g2", "g3"], ver={VERIFY: "wrong"}, ref=["Answer: 4", "Answer: 5", "Answer: 5"])
    trace = await answered(GeneratorVerifierRefiner("gen", "ver", "ref"), pool)
    assert trace.answer.endswith("Answer: 5")
    assert seen(pool, "ver") == [["g1"], ["g2"], ["g3"]]
    assert seen(pool, "ref") == [["g1", "wrong"], ["g2", "wrong"], ["g3", "wrong"]]
    assert all(REFINE in request.view.subtask for request in pool.named("ref").requests)


async def test_a_worker_rectifies_its_own_answer_and_sees_only_the_findings():
    pool = team(
        ada={ANSWER_WHOLE_QUESTION: "Answer: 3", RETRY: "Answer: 4"}, bo={ANSWER_WHOLE_QUESTION: "Answer: 4"}
    )
    trace = await answered(RectifyOrReject(("ada", "bo"), "cy"), Pool([*pool, Auditor("Answer: 3")]))
    assert trace.answer == "Answer: 4"
    assert seen(pool, "ada") == [[], ["Answer: 3", FINDING]]
    assert [sorted(asked) for asked in called(trace)] == [["ada", "bo", *["cy"] * 6], ["ada", *["cy"] * 3]]


async def test_an_answer_that_fails_its_audits_three_more_times_is_rejected():
    pool = team(
        ada={ANSWER_WHOLE_QUESTION: "Answer: 3", RETRY: "Answer: 3"},
        bo={ANSWER_WHOLE_QUESTION: "Answer: 4"},
        di={ANSWER_WHOLE_QUESTION: "Answer: 5"},
    )
    trace = await answered(RectifyOrReject(("ada", "bo", "di"), "cy"), Pool([*pool, Auditor("Answer: 3")]))
    assert trace.answer == "Answer: 4"
    assert [asked[0] for asked in called(trace)] == ["ada"] * 4


async def test_workers_answer_without_audits_if_few_answers_survive():
    pool = team(ada=["Answer: 3"] * 5, bo=["Answer: 4"] * 5)
    planner = RectifyOrReject(("ada", "bo"), "cy")
    trace = await answered(planner, Pool([*pool, Auditor("Answer: 3", "Answer: 4")]))
    assert [len(asked) for asked in called(trace)] == [8, *[4] * 6, 2]
    assert trace.answer.endswith("Answer: 3")
    assert len(trace.rounds) == planner.rounds
    assert trace.rounds[-1].accepted


async def test_an_audit_is_never_the_answer_when_calls_or_rounds_end():
    for calls in range(9, 14):
        pool = team(ada=["Answer: 3"] * 5, bo=["Answer: 4"] * 5)
        planner = RectifyOrReject(("ada", "bo"), "cy")
        runner = Runner(
            planner,
            Pool([*pool, Auditor("Answer: 3", "Answer: 4")]),
            budget=Budget(rounds=planner.rounds, calls=calls),
        )
        assert (await runner.answer(Question(text="How many?"))).answer.endswith(("Answer: 3", "Answer: 4"))
    pool = team(ada=["Answer: 3", "Answer: 9"], bo=["Answer: 4"], di=["Answer: 4"])
    planner = RectifyOrReject(("ada", "bo", "di"), "cy")
    trace = await answered(planner, Pool([*pool, Auditor("Answer: 3")]), rounds=2)
    assert trace.answer == "Answer: 4"


@pytest.mark.parametrize(
    "audit",
    [
        None,
        "It is flawed.",
        FINDING.replace("Add 1.", " "),
        FINDING.replace('"answer_changes": true', '"answer_changes": false'),
        FINDING.replace('"is_flawed": true', '"is_flawed": "yes"'),
    ],
)
def test_audit_without_a_concrete_finding_does_not_reject_an_answer(audit):
    assert not counts_as_finding(audit)
    assert counts_as_finding(f"Here: {FINDING}")


@pytest.mark.parametrize(("third", "debated"), [("4", False), ("5", False), ("6", True)])
async def test_a_debate_has_a_second_round_only_without_a_two_thirds_majority(third, debated):
    pool = team(
        ada={ANSWER_WHOLE_QUESTION: "Answer: 4", REVISE: "Answer: 5"},
        bo={ANSWER_WHOLE_QUESTION: "Answer: 5", REVISE: "Answer: 5"},
        cy={ANSWER_WHOLE_QUESTION: f"Answer: {third}", REVISE: "Answer: 6"},
    )
    trace = await answered(Debate(("ada", "bo", "cy")), pool, rounds=5)
    assert called(trace) == [["ada", "bo", "cy"]] * (1 + debated)
    assert trace.answer.endswith(f"Answer: {'5' if debated else third}")
    if debated:
        assert seen(pool, "cy")[1] == ["Answer: 4", "Answer: 5", "Answer: 6"]
