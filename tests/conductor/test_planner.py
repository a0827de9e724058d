"""The Conductor as a planner, over policies whose completions are written down."""

from dataclasses import replace

import pytest

from podium.calls import AttemptLog, CallContext
from podium.conductor import Completion, Conductor, PromptSettings, Sampling, build_prompt
from podium.errors import UsageError, WorkerError
from podium.planners.planner import EarlierRound, Planner, PlanRequest
from podium.types import Message, Profile, Question, Rating, Spent, Usage
from podium.workflow import Acceptance, PlanError, Step, Workflow, render

GOOD = 'sums 0\nmodel_id = [1]\nsubtasks = ["Add 3 and 4."]\naccess_list = [[]]'
BAD = 'sums 0\nmodel_id = [2]\nsubtasks = ["Add 3 and 4."]\naccess_list = [[]]'
EMPTY = "model_id = []\nsubtasks = []\naccess_list = []"

SITUATION = PlanRequest(Question(text="3 + 4?"), (Profile(name="a"), Profile(name="b")), seed="s")


class Script:
    """A policy that writes the given completions, and keeps what it was asked."""

    name = "script"
    plan_format = None

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.asked: list[tuple[tuple[Message, ...], Sampling]] = []

    async def complete(
        self,
        messages: tuple[Message, ...],
        sampling: Sampling,
        context: CallContext | None = None,
        log: AttemptLog | None = None,
    ) -> Completion:
        self.asked.append((messages, sampling))
        spent = Spent(Usage(input_tokens=100 * len(self.asked), output_tokens=10), 0.25)
        if context is not None:
            context.ledger.charge(spent)
        return Completion(self._texts[len(self.asked) - 1], spent.usage)


async def test_a_completion_becomes_a_plan() -> None:
    script = Script(GOOD)
    conductor: Planner = Conductor(script)
    plan = await conductor.plan(SITUATION)
    assert conductor.name == "conductor"
    assert plan.text == GOOD
    assert isinstance(plan.decision, Workflow)
    assert plan.decision.steps[0].worker == 1
    assert (plan.spent.usage.tokens, plan.spent.cost_usd) == (110, 0.25)
    assert script.asked[0][0] == build_prompt(SITUATION, PromptSettings())


@pytest.mark.parametrize(("cost_sensitivity", "shown"), [(None, {1}), (0.0, {0}), (3.0, {3}), (2.5, {2, 3})])
async def test_fractional_cost_sensitivity_draws_one_of_the_two_nearest_levels(
    cost_sensitivity: float | None, shown: set[int]
) -> None:
    prompt = PromptSettings(style="brief", levels=4, cost_sensitivity=1)
    asked = set()
    for number in range(20):
        script = Script(GOOD)
        await Conductor(script, prompt, cost_sensitivity=cost_sensitivity).plan(
            replace(SITUATION, question=Question(text=f"{number} + 4?"))
        )
        ((message,), _) = script.asked[0]
        asked |= {level for level in range(4) if f"\nThrift: {level}\n" in message.content}
    assert asked == shown


async def test_the_nearer_of_two_levels_of_thrift_is_drawn_more_often() -> None:
    prompt = PromptSettings(style="brief", levels=4)
    counts = [0, 0]
    for number in range(400):
        script = Script(GOOD, GOOD)
        conductor = Conductor(script, prompt, cost_sensitivity=1.2)
        request = replace(SITUATION, question=Question(text=f"{number} + 4?"))
        plan = await conductor.plan(request)
        assert isinstance(plan.decision, Workflow)
        await conductor.plan(
            replace(request, earlier_rounds=(EarlierRound(plan.decision, "7"),), seed="later")
        )
        first, second = ("Thrift: 2" in messages[0].content for messages, _ in script.asked)
        assert first == second
        counts[first] += 1
    assert 50 < counts[1] < 110


async def test_invalid_plan_is_returned_without_a_retry_by_default() -> None:
    script = Script(BAD)
    plan = await Conductor(script).plan(SITUATION)
    assert isinstance(plan.decision, PlanError)
    assert plan.text == BAD
    assert len(script.asked) == 1


async def test_a_second_try_shows_the_error_and_pays_for_both() -> None:
    script = Script(BAD, GOOD)
    plan = await Conductor(script, second_try=True).plan(SITUATION)
    assert isinstance(plan.decision, Workflow)
    assert plan.text == GOOD
    assert plan.spent.usage == Usage(input_tokens=300, output_tokens=20)
    assert plan.spent.cost_usd == 0.5
    *earlier, completion, error = script.asked[1][0]
    assert tuple(earlier) == script.asked[0][0]
    assert completion == Message(role="assistant", content=BAD)
    assert "cannot be run" in error.content
    assert plan.messages == script.asked[0][0]
    (rejected,) = plan.rejected
    assert (rejected.text, rejected.spent.usage.tokens, rejected.spent.cost_usd) == (BAD, 110, 0.25)
    assert str(rejected.decision) in error.content


async def test_a_brief_policy_is_drawn_again_and_not_greedily() -> None:
    script = Script(BAD, GOOD)
    await Conductor(script, PromptSettings(style="brief"), second_try=True).plan(SITUATION)
    (first, greedy), (second, drawn) = script.asked
    assert first == second
    assert (greedy.temperature, drawn.temperature) == (0.0, 1.0)
    assert greedy.seed != drawn.seed


@pytest.mark.parametrize("later", [False, True])
async def test_three_empty_lists_mean_acceptance_only_in_later_rounds(later: bool) -> None:
    first = await Conductor(Script(GOOD)).plan(SITUATION)
    assert isinstance(first.decision, Workflow)
    earlier_rounds = (EarlierRound(first.decision, "7"),) if later else ()
    request = PlanRequest(SITUATION.question, SITUATION.pool, earlier_rounds)
    plan = await Conductor(Script(EMPTY)).plan(request)
    assert isinstance(plan.decision, Acceptance if later else PlanError)


async def test_conductor_applies_the_step_limit_of_the_request() -> None:
    request = PlanRequest(SITUATION.question, SITUATION.pool, max_steps=1)
    two = 'model_id = [0, 1]\nsubtasks = ["a", "b"]\naccess_list = [[], []]'
    assert isinstance((await Conductor(Script(two)).plan(request)).decision, PlanError)
    assert isinstance((await Conductor(Script(two)).plan(SITUATION)).decision, Workflow)


async def test_sampling_seed_depends_on_request_round_and_settings() -> None:
    first = await Conductor(Script(GOOD)).plan(SITUATION)
    assert isinstance(first.decision, Workflow)
    later = PlanRequest(SITUATION.question, SITUATION.pool, (EarlierRound(first.decision, "7"),), seed="s")
    other = PlanRequest(SITUATION.question, SITUATION.pool, seed="t")
    seeds = []
    for request, sampling in [
        (SITUATION, Sampling()),
        (SITUATION, Sampling()),
        (later, Sampling()),
        (other, Sampling()),
        (SITUATION, Sampling(seed="1")),
    ]:
        script = Script(GOOD)
        await Conductor(script, sampling=sampling).plan(request)
        seeds.append(script.asked[0][1].seed)
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 4


async def test_conductor_uses_the_sampling_settings_of_its_caller() -> None:
    script = Script(GOOD)
    await Conductor(script, sampling=Sampling(temperature=0.7, max_tokens=50)).plan(SITUATION)
    sampling = script.asked[0][1]
    assert (sampling.temperature, sampling.max_tokens) == (0.7, 50)


@pytest.mark.parametrize(
    "error", [WorkerError("the endpoint is gone", kind="connection"), UsageError("the prompt is too long")]
)
async def test_an_unanswered_second_try_leaves_the_first_with_its_cost(
    error: WorkerError | UsageError,
) -> None:
    class DownThen(Script):
        async def complete(
            self,
            messages: tuple[Message, ...],
            sampling: Sampling,
            context: CallContext | None = None,
            log: AttemptLog | None = None,
        ) -> Completion:
            if self.asked:
                raise error
            return await super().complete(messages, sampling, context, log)

    alone = await Conductor(Script(BAD)).plan(SITUATION)
    plan = await Conductor(DownThen(BAD), second_try=True).plan(SITUATION)
    assert isinstance(plan.decision, PlanError)
    assert isinstance(alone.decision, PlanError)
    assert plan.decision.kind == alone.decision.kind
    assert plan.decision.message.startswith(alone.decision.message)
    assert plan.decision.message.endswith(f"A second try failed: {error}")
    assert (plan.spent.usage.tokens, plan.spent.cost_usd) == (110, 0.25)


# --- how a policy numbers the pool ---------------------------------------------------------------------------

RATED = tuple(
    Profile(name=name, rating=Rating(cluster="sums", accuracy=right, cost_usd=0.01, questions=8))
    for name, right in (("ada", 0.5), ("bob", 0.9))
)
VOTE_LAST, VOTE_FIRST = (*RATED, Profile(name="vote")), (Profile(name="vote"), *RATED)
TRAINED = PromptSettings(style="brief")


def committee(*workers: int) -> Workflow:
    return Workflow(tuple(Step(worker, f"Step {place}.") for place, worker in enumerate(workers)))


async def test_plan_of_a_rating_policy_is_mapped_to_the_pool_worker_numbers() -> None:
    written = f"sums12; steps 3\n{render(committee(1, 2, 0))}"
    request = replace(SITUATION, pool=VOTE_LAST, earlier_rounds=(EarlierRound(committee(0, 1, 2), "7"),))
    script = Script(written)
    plan = await Conductor(script, TRAINED).plan(request)
    as_trained = replace(SITUATION, pool=VOTE_FIRST, earlier_rounds=(EarlierRound(committee(1, 2, 0), "7"),))
    assert script.asked[0][0] == build_prompt(as_trained, TRAINED)
    assert plan.decision == committee(0, 1, 2)
    assert plan.text == f"sums12; steps 3\n{render(committee(0, 1, 2))}"
    assert (plan.spent.usage.tokens, plan.spent.cost_usd) == (110, 0.25)
    same = await Conductor(Script(written), TRAINED).plan(as_trained)
    assert (same.decision, same.text) == (committee(1, 2, 0), written)


@pytest.mark.parametrize(
    ("pool", "prompt"),
    [
        pytest.param(VOTE_LAST, PromptSettings(), id="an instruct model"),
        pytest.param(VOTE_LAST, PromptSettings(style="brief", pool="anonymous"), id="no ratings shown"),
        pytest.param((Profile(name="a"), Profile(name="vote")), TRAINED, id="no ratings known"),
    ],
)
async def test_every_other_policy_numbers_workers_as_the_pool_does(
    pool: tuple[Profile, ...], prompt: PromptSettings
) -> None:
    request = replace(SITUATION, pool=pool)
    script = Script(GOOD)
    plan = await Conductor(script, prompt).plan(request)
    assert script.asked[0][0] == build_prompt(request, prompt)
    assert isinstance(plan.decision, Workflow)
    assert (plan.decision.steps[0].worker, plan.text) == (1, GOOD)


@pytest.mark.parametrize("text", [BAD.replace("[2]", "[3]"), EMPTY])
async def test_text_without_a_valid_workflow_is_kept_as_written(text: str) -> None:
    request = replace(SITUATION, pool=VOTE_LAST, earlier_rounds=(EarlierRound(committee(2), "7"),))
    plan = await Conductor(Script(text), TRAINED).plan(request)
    assert plan.text == text
    assert not isinstance(plan.decision, Workflow)
