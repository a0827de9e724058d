"""A recorded model as a worker: which response it gives, what it says it cost, and how it fares in workflows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import ConfigError, WorkerError
from podium.executor.step_input import MessageLayout, build_messages
from podium.planners import SelfConsistency
from podium.planners.planner import PrewrittenPlans
from podium.recordings import RecordedResponse, Recording
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.text.answer import final_answer, normalise
from podium.trace import Plan
from podium.types import Budget, Limits, Message, Price, Question, Usage, estimate_tokens
from podium.workers import Pool, Request, ScriptedWorker, VoteWorker, Worker
from podium.workers.replay import ReplayWorker, unknown_length_warning, with_answer
from podium.workers.spec import ReplaySpec
from podium.workers.view import EarlierStep, WorkerView
from podium.workflow import Access, Step, Workflow

MakeRecording = Callable[..., Recording]
FOUR, FIVE = "What is 2 + 2?", "What is\n2 + 3?\n"
TOKENS = {"input_tokens": 7, "output_tokens": 30}
GIVEN = {
    FOUR: [
        RecordedResponse("ada", 0, "Answer: 4", "4", 1.0, **TOKENS, seconds=2.5),
        RecordedResponse("ada", 1, "Answer: 5", "5", 0.0, output_tokens=9, estimated=True),
        RecordedResponse("ada", 2, "It is 4.", "4", 1.0),
        RecordedResponse("bob", 0, "Answer: 4", "4", 1.0, **TOKENS),
    ],
    FIVE: [RecordedResponse("ada", 0, "Answer: 5", "5", 1.0)],
    "Nobody's?": [RecordedResponse("carol", 0, "Answer: 0")],
}


@pytest.fixture
def recording(make_recording: MakeRecording) -> Recording:
    return make_recording(GIVEN)


def replay(recording: Recording, name: str = "ada", **options: Any) -> ReplayWorker:
    spec = ReplaySpec(name=name, price=Price(output=1e6), latency=1.5, recording=recording.path, **options)
    return ReplayWorker(spec, recording)


def request(
    text: str = FOUR, *, earlier_calls: int = 0, question_seed: str = "7", layout: MessageLayout = "packed"
) -> Request:
    shown = WorkerView(text, "Answer the whole question.")
    return Request(
        build_messages(shown, layout, "feed"),
        seed="0",
        question_seed=question_seed,
        earlier_calls=earlier_calls,
    )


async def samples_of(worker: ReplayWorker, count: int, question_seed: str = "7") -> list[str]:
    replies = [
        await worker.answer(request(earlier_calls=n, question_seed=question_seed)) for n in range(count)
    ]
    return [str(reply.recorded).rpartition("/")[2] for reply in replies]


# --- which response ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["packed", "chat", "plain"])
@pytest.mark.parametrize("text", [FOUR, FIVE])
async def test_replay_returns_the_recorded_response_with_its_id(
    recording: Recording, layout: MessageLayout, text: str
) -> None:
    worker = replay(recording)
    assert isinstance(worker, Worker)
    reply = await worker.answer(request(text, layout=layout))
    assert reply.text == GIVEN[text][0].text
    assert reply.recorded == f"small#{'q0' if text == FOUR else 'q1'}/ada/0"
    await worker.close()
    await worker.close()


@pytest.mark.parametrize("thoughts", ["<think>Answer: 5?</think>\n", "Answer: 5?\n</think>\n\n"])
async def test_recorded_thoughts_are_no_part_of_the_answer(
    make_recording: MakeRecording, thoughts: str
) -> None:
    response = RecordedResponse("ada", 0, f"{thoughts}Answer: 4", "4", 1.0)
    reply = await replay(make_recording({FOUR: [response]})).answer(request(FOUR))
    assert (reply.text, reply.reasoning) == ("Answer: 4", "Answer: 5?")


async def test_replayed_response_ignores_subtask_and_visible_responses(recording: Recording) -> None:
    shown = WorkerView(FOUR, "Say 9.", (EarlierStep(0, "Do.", "Answer: 9"),), "Answer: 8")
    messages = (Message(role="user", content="Hello"), *build_messages(shown, "packed", "feed"))
    reply = await replay(recording).answer(Request(messages, seed="1"))
    assert reply.text == "Answer: 4"


async def test_replay_takes_a_bare_message_as_the_question(recording: Recording) -> None:
    reply = await replay(recording).answer(Request((Message(role="user", content=FOUR),), seed="0"))
    assert reply.text == "Answer: 4"


async def test_recorded_samples_are_replayed_in_order_and_then_from_the_start(recording: Recording) -> None:
    assert await samples_of(replay(recording), 7) == ["0", "1", "2", "0", "1", "2", "0"]
    assert await samples_of(replay(recording, "bob"), 2) == ["0", "0"]


async def test_a_random_order_is_a_permutation_that_the_questions_seed_names(recording: Recording) -> None:
    worker = replay(recording, samples="random")
    orders = {}
    for seed in map(str, range(24)):
        order = await samples_of(worker, 6, seed)
        assert sorted(order[:3]) == ["0", "1", "2"]
        assert order[3:] == order[:3]
        assert await samples_of(replay(recording, samples="random"), 6, seed) == order
        orders[seed] = tuple(order)
    assert len(set(orders.values())) > 2
    assert {order[0] for order in orders.values()} == {"0", "1", "2"}


@pytest.mark.parametrize("text", ["What is 9 + 9?", "what is 2 + 2?", "Nobody's?", "X" * 500])
async def test_an_unrecorded_question_is_a_failure_naming_worker_and_question(
    recording: Recording, text: str
) -> None:
    with pytest.raises(WorkerError) as caught:
        await replay(recording).answer(request(text))
    assert (caught.value.kind, caught.value.retryable) == ("unrecorded", False)
    assert str(caught.value) == f"small holds no response of ada to the question {text[:60]!r}."
    assert not replay(recording).knows(text)


@pytest.mark.parametrize("text", [f"  {FOUR}\n", FIVE.strip()])
async def test_space_around_a_question_does_not_count(recording: Recording, text: str) -> None:
    assert replay(recording).knows(text)
    for layout in ("packed", "chat", "plain"):
        assert (await replay(recording).answer(request(text, layout=layout))).recorded is not None


LIKE_OURS = "What is it?\n<<<end t>>>\n\n<<<your subtask t>>>\nSay 3.\n<<<end t>>>"


@pytest.mark.parametrize("layout", ["packed", "chat", "plain"])
async def test_a_question_that_looks_like_a_message_of_ours_is_found(
    make_recording: MakeRecording, layout: MessageLayout
) -> None:
    worker = replay(make_recording({LIKE_OURS: [RecordedResponse("ada", 0, "Answer: 3")]}))
    assert (await worker.answer(request(LIKE_OURS, layout=layout))).text == "Answer: 3"


@pytest.mark.parametrize("inner", ["packed", "chat", "plain"])
async def test_a_question_is_found_within_the_subtask_of_a_team(
    recording: Recording, inner: MessageLayout
) -> None:
    (message,) = request(FOUR).messages
    reply = await replay(recording).answer(request(message.content, layout=inner))
    assert reply.recorded == "small#q0/ada/0"
    assert reply.usage.input_tokens == TOKENS["input_tokens"]


async def test_a_team_of_replay_workers_answers_from_their_recording(
    recording: Recording, tmp_path: Path
) -> None:
    (tmp_path / "inner.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "replay"\nrecording = "small.parquet"\n'
        '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    (tmp_path / "outer.toml").write_text(
        '[[worker]]\nname = "team"\nkind = "podium"\npool = "inner.toml"\nplan.planner = "self-consistency:ada:3"\n'
    )
    pool = open_pool(str(tmp_path / "outer.toml"))
    plan = steps_planner(Step(0, "Think."), Step(0, "Look at it.", Access(all=True)))
    trace = await Runner(plan, pool).answer(Question(text=FOUR), seed="1")
    await pool.close()
    assert trace.status == "ok"
    for span in trace.spans:
        assert span.nested is not None
        assert [inner.recorded for inner in span.nested.spans] == [
            *(f"small#q0/ada/{sample}" for sample in range(3)),
            None,
        ]


def test_an_unknown_worker_is_answered_with_the_nearest(recording: Recording) -> None:
    with pytest.raises(
        ConfigError, match=r"small\.parquet has no responses of 'caroll'; did you mean 'carol'\?"
    ):
        replay(recording, "caroll")


@pytest.mark.parametrize(
    ("earlier_calls", "assumed", "usage"),
    [
        (0, None, Usage(input_tokens=7, output_tokens=30)),
        (1, None, Usage(input_tokens=estimate_tokens(FOUR), output_tokens=9, estimated=True)),
        (2, None, Usage(input_tokens=estimate_tokens(FOUR), output_tokens=2, estimated=True)),
        (0, 500, Usage(input_tokens=7, output_tokens=500, estimated=True)),
        (2, 0, Usage(input_tokens=estimate_tokens(FOUR), output_tokens=0, estimated=True)),
    ],
)
async def test_replayed_usage_is_recorded_or_marked_as_estimated(
    recording: Recording, earlier_calls: int, assumed: int | None, usage: Usage
) -> None:
    worker = replay(recording, assumed_output_tokens=assumed)
    assert (await worker.answer(request(earlier_calls=earlier_calls))).usage == usage


ONLY = "<answer>4</answer>"


@pytest.mark.parametrize(
    ("response", "assumed", "tokens"),
    [
        (RecordedResponse("ada", 0, ONLY, "4", 1.0), None, 0),
        (RecordedResponse("ada", 0, "", "4", 1.0), None, 0),
        (RecordedResponse("ada", 0, ONLY, "4", 1.0), 300, 300),
        (RecordedResponse("ada", 0, ONLY, "4", 1.0, output_tokens=90), None, 90),
        (RecordedResponse("ada", 0, "It is 4.", "4", 1.0), None, 2),
    ],
)
async def test_an_answer_alone_does_not_tell_how_long_the_response_was(
    make_recording: MakeRecording, response: RecordedResponse, assumed: int | None, tokens: int
) -> None:
    worker = replay(make_recording({FOUR: [response]}), assumed_output_tokens=assumed)
    assert (await worker.answer(request())).usage.output_tokens == tokens
    sentence = unknown_length_warning([worker], [FOUR])
    if tokens:
        assert sentence is None
    else:
        assert sentence is not None
        assert "the output tokens of ada, so their cost counts input tokens alone" in sentence


async def test_free_replay_worker_gets_no_unknown_length_warning(make_recording: MakeRecording) -> None:
    recording = make_recording({FOUR: [RecordedResponse("ada", 0, ONLY, "4", 1.0)]})
    assert (
        unknown_length_warning(
            [ReplayWorker(ReplaySpec(name="ada", recording=recording.path), recording)], [FOUR]
        )
        is None
    )


async def test_replayed_latency_is_the_recorded_one_or_that_of_the_profile(recording: Recording) -> None:
    replies = [
        await replay(recording).answer(request(earlier_calls=earlier_calls)) for earlier_calls in range(2)
    ]
    assert [reply.latency_s for reply in replies] == [2.5, 1.5]
    unknown = ReplayWorker(ReplaySpec(name="ada", recording=recording.path), recording)
    assert (await unknown.answer(request(earlier_calls=1))).latency_s == 0.0


async def test_recorded_call_of_zero_seconds_replays_with_zero_latency(make_recording: MakeRecording) -> None:
    quick = make_recording({FOUR: [RecordedResponse("ada", 0, "Answer: 4", seconds=0.0)]}, name="quick")
    assert (await replay(quick).answer(request())).latency_s == 0.0


# --- the answer in it --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer", "shown"),
    [
        ("Answer: 4", "4", "Answer: 4"),
        ("It is\n**Answer:** Four.", "four", "It is\n**Answer:** Four."),
        ("It is 4.", "4", "It is 4.\n<answer>4</answer>"),
        ("Answer: 5, no", "4", "Answer: 5, no\n<answer>4</answer>"),
        ("<answer>5</answer>", "4", "<answer>5</answer>\n<answer>4</answer>"),
        ("<answer>1 2\n3 4</answer>", "1 2\n3 4", "<answer>1 2\n3 4</answer>"),
        ("1 2\n3 4", "1 2\n3 4", "1 2\n3 4\n<answer>1 2\n3 4</answer>"),
        ("cut off <answer>4", "5", "cut off <answer>4\n<answer>5</answer>"),
        ("Answer:", "4", "Answer:\n<answer>4</answer>"),
        ("", "4", "<answer>4</answer>"),
        ("It is 4.", None, "It is 4."),
        ("It is 4.", " \n", "It is 4."),
        ("", None, ""),
    ],
)
def test_recorded_answer_is_appended_when_missing_from_the_text(
    text: str, answer: str | None, shown: str
) -> None:
    assert with_answer(RecordedResponse("ada", 0, text, answer)) == shown


PLAIN = st.text("abcXYZ 0123456789+-.,()[]\n", max_size=20)


@settings(deadline=None)
@given(st.text(max_size=60) | PLAIN.map("Answer: {}\n".format) | PLAIN.map("<answer>{}".format), PLAIN)
def test_final_answer_of_a_replayed_response_is_the_recorded_answer(text: str, answer: str) -> None:
    shown = with_answer(RecordedResponse("ada", 0, text, answer))
    if answer.strip():
        assert normalise(str(final_answer(shown))) == normalise(answer)
    else:
        assert shown == text


@pytest.mark.parametrize(
    "answer",
    [
        ": 3",
        "So it is.\nAnswer: 3",
        '{\n  "answer": 3,\n  "unit": "m"\n}',
        "My answer: yes\nYours: no",
        "$5$",
    ],
)
def test_a_recorded_answer_that_looks_like_an_answer_line_is_found_whole(answer: str) -> None:
    found = final_answer(with_answer(RecordedResponse("ada", 0, "Let me see.", answer)))
    assert found is not None
    assert normalise(found) in (normalise(answer), normalise(answer.strip("$")))


async def test_a_vote_on_answers_of_several_lines_keeps_them_whole() -> None:
    shown = ["<answer>1 2\n3 4</answer>", "Answer: 5", "so\n<answer>1 2\n3 4</answer>"]
    earlier = tuple(EarlierStep(number, f"part {number}", text) for number, text in enumerate(shown))
    shown = WorkerView("Q?", "Vote.", earlier)
    reply = await VoteWorker().answer(Request(build_messages(shown, "packed", "feed"), seed="0"))
    assert reply.text == "2 of 3 responses agree.\n<answer>1 2\n3 4</answer>"
    assert final_answer(reply.text) == "1 2\n3 4"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>1</answer>\nAnswer: 2", "2"),
        ("Answer: 1\n<answer>2</answer>", "2"),
        ("Answer: 1\n<answer></answer>", "1"),
        ("<answer>1</answer> The answer is: it depends on <answer>2</answer>", "2"),
        ("Answer: 1\n\\boxed{2}", "1"),
    ],
)
def test_later_of_answer_line_and_answer_tag_counts(text: str, answer: str) -> None:
    assert final_answer(text) == answer


# --- in workflows ------------------------------------------------------------------------------------------


def steps_planner(*steps: Step) -> PrewrittenPlans:
    """The same workflow in every round."""
    return PrewrittenPlans((Plan("", Workflow(steps)),))


async def test_a_vote_over_one_workers_three_steps_counts_three_samples(
    recording: Recording,
) -> None:
    pool = Pool([replay(recording), VoteWorker()])
    trace = await Runner(SelfConsistency("ada", 3), pool).answer(Question(text=FOUR), seed="1")
    assert [span.recorded for span in trace.spans] == [
        "small#q0/ada/0",
        "small#q0/ada/1",
        "small#q0/ada/2",
        None,
    ]
    assert trace.answer is not None
    assert final_answer(trace.answer) == "4"
    assert trace.answer.startswith("2 of 3 responses agree.")
    assert [span.seconds for span in trace.spans[:2]] == [2.5, 1.5]
    assert trace.cost_usd == 30 + 9 + 2


async def test_the_second_round_goes_on_with_the_next_sample(recording: Recording) -> None:
    planner = steps_planner(Step(1, "Do."), Step(0, "Do."), Step(0, "Again.", Access(all=True)))
    pool = Pool([replay(recording), replay(recording, "bob")])
    trace = await Runner(planner, pool, budget=Budget(rounds=2)).answer(Question(text=FOUR), seed="1")
    assert [[span.recorded for span in round_.spans] for round_ in trace.rounds] == [
        ["small#q0/bob/0", "small#q0/ada/0", "small#q0/ada/1"],
        ["small#q0/bob/0", "small#q0/ada/2", "small#q0/ada/0"],
    ]


async def test_every_request_has_the_questions_seed_and_its_workers_call_number() -> None:
    ada, bob = ScriptedWorker("ada", {"": "4"}), ScriptedWorker("bob", {"": "5"})
    planner = steps_planner(*(Step(worker, "Do.", Access(all=True)) for worker in (0, 1, 0)))
    await Runner(planner, Pool([ada, bob]), budget=Budget(rounds=2)).answer(Question(text=FOUR), seed="s")
    assert [(asked.seed, asked.earlier_calls) for asked in ada.requests] == [
        ("s/0/0", 0),
        ("s/0/2", 1),
        ("s/1/0", 2),
        ("s/1/2", 3),
    ]
    assert [(asked.seed, asked.earlier_calls) for asked in bob.requests] == [("s/0/1", 0), ("s/1/1", 1)]
    assert {asked.question_seed for asked in (*ada.requests, *bob.requests)} == {"s"}


# --- in team files -----------------------------------------------------------------------------------------

FILE = """
[[worker]]
name = "ada"
kind = "replay"
recording = "{recording}"
price = {{ output = 2.0 }}

[[worker]]
name = "second"
kind = "replay"
recording = "{recording}"
worker = "bob"
samples = "random"
assumed_output_tokens = 5
latency = 4.0
"""


def write_pool(folder: Path, recording: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "pool.toml"
    path.write_text(FILE.format(recording=recording))
    return path


async def test_a_pool_file_names_recordings_from_its_own_folder(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pool(tmp_path / "pools", "../small.parquet")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    pool = open_pool(path)
    ada, second = pool
    assert (ada.limits, ada.profile.price) == (Limits(retries=0), Price(output=2.0))
    assert (await ada.answer(request(FIVE))).text == "Answer: 5"
    reply = await second.answer(request())
    assert (reply.recorded, reply.usage.output_tokens, reply.latency_s) == ("small#q0/bob/0", 5, 4.0)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('worker = "bob"', 'worker = "bop"', r"has no responses of 'bop'; did you mean 'bob'\?"),
        ("small.parquet", "smell.parquet", r"smell\.parquet: there is no such file"),
        ('samples = "random"', 'samples = "turn"', r"samples is \"turn\"; did you mean 'in turn'\?"),
        ("assumed_output_tokens = 5", "assumed_output_tokens = -5", "greater than or equal to 0"),
    ],
)
def test_unusable_replay_pool_file_is_refused_with_file_and_line(
    recording: Recording, tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    path = write_pool(tmp_path, "small.parquet")
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(ConfigError, match=sentence) as caught:
        open_pool(path)
    assert str(caught.value).startswith(f"{path}, line ")
    assert "\n" not in str(caught.value)
