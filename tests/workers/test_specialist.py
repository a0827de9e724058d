"""Specialists behave as language models do in what matters for coordination."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from podium.lab import SKILLS, VALUE_TYPES, read_problem
from podium.lab.intent import Intent, read_intent
from podium.tasks.embedded import EmbeddedTasks
from podium.tasks.task import Task
from podium.types import Message, Profile
from podium.workers.base import Reply, Request
from podium.workers.specialist import THINKING_TOKENS, Specialist

QUESTION = "First write 'planet' backwards; next count the vowels in it; last, add 40 to the result."
TRUTHS = ("tenalp", "2", "42")
ANSWER_WHOLE_QUESTION, CHECK = "Answer the whole question.", "Check the work shown and mend it."
MANY = 400


def able(chance: float = 1.0, **skills: float) -> Specialist:
    return Specialist(Profile(name="sim"), dict.fromkeys(SKILLS, chance) | skills)


def ask(
    worker: Specialist, subtask: str, shown: Sequence[str] = (), *, question: str = QUESTION, seed: str = "0"
) -> str:
    return reply(worker, subtask, shown, question=question, seed=seed).text


def reply(
    worker: Specialist, subtask: str, shown: Sequence[str] = (), *, question: str = QUESTION, seed: str = "0"
) -> Reply:
    blocks = f"<<<question t>>>\n{question}\n<<<end t>>>\n"
    for j, response in enumerate(shown):
        blocks += f"<<<step {j} subtask t>>>\nsomething\n<<<end t>>>\n"
        blocks += f"<<<step {j} response t>>>\n{response}\n<<<end t>>>\n"
    blocks += f"<<<your subtask t>>>\n{subtask}\n<<<end t>>>"
    request = Request((Message(role="user", content=blocks),), seed)
    return asyncio.run(worker.answer(request))


def test_a_question_that_cannot_be_computed_has_an_answer_too() -> None:
    assert "do not know" in ask(
        able(), ANSWER_WHOLE_QUESTION, question="Find the remainder of 17 after division by 0."
    )


def correct(task: Task, response: str) -> bool:
    return asyncio.run(task.grade(response)).correct


def share(of: Sequence[bool]) -> float:
    return sum(of) / len(of)


def answered(worker: Specialist, subtask: str, shown: Sequence[str] = ()) -> float:
    """Share of seeds and questions with the right final answer."""
    right = []
    for number, task in enumerate(EmbeddedTasks("train", size=MANY, hop_shares=(0, 0, 1))):
        right.append(
            correct(task, ask(worker, subtask, shown, question=task.question.text, seed=str(number)))
        )
    return share(right)


@pytest.mark.parametrize(
    ("subtask", "shown", "text"),
    [
        (ANSWER_WHOLE_QUESTION, [], "Part 1: tenalp\nPart 2: 2\nPart 3: 42\nAnswer: 42"),
        ("Do part 1 only.", [], "Part 1: tenalp\nAnswer: tenalp"),
        ("Do the second step.", [], "Part 1: tenalp\nPart 2: 2\nAnswer: 2"),
        ("Do the last part.", ["Part 2: 2\nAnswer: 2"], "Part 2: 2\nPart 3: 42\nAnswer: 42"),
        ("Only this: write 'planet' backwards", [], "Part 1: tenalp\nAnswer: tenalp"),
        ("Please tally the vowels of 'tenalp'.", ["Part 1: tenalp"], "Part 1: tenalp\nPart 2: 2\nAnswer: 2"),
        ("Do the next part.", ["Part 1: tenalp"], "Part 1: tenalp\nPart 2: 2\nAnswer: 2"),
        ("Finish the rest.", ["Part 1: tenalp"], "Part 1: tenalp\nPart 2: 2\nPart 3: 42\nAnswer: 42"),
        (CHECK, ["Part 1: tenalp\nPart 2: 3\nAnswer: 3"], "Part 1: tenalp\nPart 2: 2\nAnswer: 2"),
        (CHECK, [], "There is no work to check."),
        (
            "Compare the answers shown and give the best one.",
            ["Answer: 7", "Answer: 7", "Answer: 9"],
            "Answer: 7",
        ),
        ("Compare the answers shown and give the best one.", [], "There are no answers to compare."),
    ],
)
def test_an_able_worker_does_what_the_subtask_says(subtask: str, shown: list[str], text: str) -> None:
    seeds = [seed for seed in map(str, range(40)) if ask(able(), subtask, shown, seed=seed) == text]
    # Even the ablest overlooks things, and a share of its luck is fixed for this question.
    assert len(seeds) >= 10


def test_a_question_of_another_kind_gets_no_answer_line() -> None:
    assert (
        ask(able(), ANSWER_WHOLE_QUESTION, question="Who wrote Hamlet?")
        == "I do not know how to work this out."
    )


def test_a_worker_without_the_skill_is_wrong_in_a_plausible_way() -> None:
    for task in EmbeddedTasks("train", size=100, hop_shares=(1,)):
        problem = read_problem(task.question.text)
        assert problem is not None
        wrong = ask(able(0.0), ANSWER_WHOLE_QUESTION, question=task.question.text).rpartition("Answer: ")[2]
        assert not correct(task, f"Answer: {wrong}")
        VALUE_TYPES[problem.hops[0].operation.gives].read(wrong)


def test_a_right_result_in_view_is_taken() -> None:
    shown = ["Part 1: tenalp\nPart 2: 2\nAnswer: 2"]
    unable_before = able(words=0.0)
    assert ask(unable_before, "Only this: add 40 to the result", shown).endswith("Answer: 42")


def test_a_wrong_result_in_view_is_taken_too_unless_it_is_noticed() -> None:
    shown = ["Part 1: tenalp\nPart 2: 5\nAnswer: 5"]
    answers = [ask(able(), "Only this: add 40 to the result", shown, seed=str(s)) for s in range(100)]
    taken = share([answer.endswith("Answer: 45") for answer in answers])
    mended = share([answer.endswith("Answer: 42") for answer in answers])
    assert taken > mended > 0
    assert all(ask(able(words=0.0), "Finish the rest.", shown, seed=str(s)).endswith("45") for s in range(20))


def test_who_is_weak_in_a_skill_is_not_sure_and_says_so() -> None:
    assert ask(able(words=0.59), "Do part 1 only.").startswith("Part 1: ")
    assert ask(able(words=0.59), "Do part 1 only.").split("\n")[0].endswith(" (not sure)")
    assert "not sure" not in ask(able(words=0.6), ANSWER_WHOLE_QUESTION)
    assert "not sure" not in ask(
        able(words=0.0), "Finish the rest.", ["Part 1: tenalp\nPart 2: 2\nAnswer: 2"]
    )


def test_a_doubted_result_is_done_again_by_who_is_sure_and_passed_on_by_others() -> None:
    shown = ["Part 1: tenalp\nPart 2: 5 (not sure)\nPart 3: 45\nAnswer: 45"]
    for subtask in (ANSWER_WHOLE_QUESTION, CHECK, "Finish the rest.", "Do part 3 only."):
        for seed in map(str, range(20)):
            assert ask(able(), subtask, shown, seed=seed).endswith("Part 2: 2\nPart 3: 42\nAnswer: 42")
    assert "Part 2: 5 (not sure)" in ask(able(words=0.0), ANSWER_WHOLE_QUESTION, shown)
    assert "Part 2: 5 (not sure)" in ask(able(words=0.0), CHECK, shown)


def test_a_later_sure_result_ends_a_doubt() -> None:
    shown = ["Part 1: tenalp (not sure)", "Part 1: tenalp\nPart 2: 2"]
    assert (
        ask(able(words=0.0), "Finish the rest.", shown) == "Part 1: tenalp\nPart 2: 2\nPart 3: 42\nAnswer: 42"
    )


def test_a_narrow_subtask_is_done_better_than_a_whole_question() -> None:
    def by_parts(worker: Specialist) -> float:
        right = []
        for number, task in enumerate(EmbeddedTasks("train", size=MANY, hop_shares=(0, 0, 1))):
            problem = read_problem(task.question.text)
            assert problem is not None
            shown: list[str] = []
            for hop in problem.hops:
                shown.append(
                    ask(
                        worker,
                        f"Only this: {hop.clause}",
                        shown,
                        question=task.question.text,
                        seed=str(number),
                    )
                )
            right.append(correct(task, shown[-1]))
        return share(right)

    assert by_parts(able(0.9)) > answered(able(0.9), ANSWER_WHOLE_QUESTION) + 0.05


def test_a_checker_mends_more_than_it_breaks_and_an_unskilled_one_spoils() -> None:
    mended, broken, spoiled = [], [], []
    for number, task in enumerate(EmbeddedTasks("train", size=MANY, hop_shares=(0, 1))):
        problem = read_problem(task.question.text)
        assert problem is not None
        first, second = problem.truths
        right = f"Part 1: {first}\nPart 2: {second}\nAnswer: {second}"
        wrong = ask(able(0.0), ANSWER_WHOLE_QUESTION, question=task.question.text)
        for worker, shown, to in [
            (able(0.9), wrong, mended),
            (able(0.9), right, broken),
            (able(0.2), right, spoiled),
        ]:
            to.append(
                correct(task, ask(worker, CHECK, [shown], question=task.question.text, seed=str(number)))
            )
    assert share(mended) > 0.3
    assert 1 - share(broken) < share(mended) / 3
    assert 1 - share(spoiled) > 2 * (1 - share(broken))


def test_asking_again_helps_less_than_asking_another() -> None:
    one, other = able(0.6), Specialist(Profile(name="other"), dict.fromkeys(SKILLS, 0.6))
    both_same, both_other = [], []
    for task in EmbeddedTasks("train", size=MANY, hop_shares=(1,)):
        first = correct(task, ask(one, ANSWER_WHOLE_QUESTION, question=task.question.text, seed="a"))
        again = correct(task, ask(one, ANSWER_WHOLE_QUESTION, question=task.question.text, seed="b"))
        another = correct(task, ask(other, ANSWER_WHOLE_QUESTION, question=task.question.text, seed="b"))
        both_same.append(first or again)
        both_other.append(first or another)
    assert share(both_other) > share(both_same) + 0.05


def test_the_same_seed_gives_the_same_reply() -> None:
    for seed in map(str, range(20)):
        assert reply(able(0.5), ANSWER_WHOLE_QUESTION, seed=seed) == reply(
            able(0.5), ANSWER_WHOLE_QUESTION, seed=seed
        )
    assert len({ask(able(0.5), ANSWER_WHOLE_QUESTION, seed=str(seed)) for seed in range(40)}) > 1


def test_work_costs_tokens_and_claimed_seconds() -> None:
    one, three = reply(able(), "Do part 1 only."), reply(able(), ANSWER_WHOLE_QUESTION)
    assert three.usage.output_tokens > 2 * one.usage.output_tokens
    assert three.latency_s is not None
    assert one.latency_s is not None
    assert three.latency_s > one.latency_s


def test_looking_at_finished_work_costs_thought_too() -> None:
    shown = ["Part 1: tenalp\nPart 2: 2\nPart 3: 42\nAnswer: 42"]
    looked, worked = reply(able(), "Finish the rest.", shown), reply(able(), "Do part 1 only.")
    assert THINKING_TOKENS <= looked.usage.output_tokens < 1.2 * worked.usage.output_tokens


@pytest.mark.parametrize(
    ("subtask", "intent"),
    [
        (QUESTION, Intent("whole")),
        ("Solve it.", Intent("whole")),
        ("Do parts 1 and 2.", Intent("parts", (0, 1))),
        ("Do the final step.", Intent("parts", (2,))),
        ("Do part 9 only.", Intent("whole")),
        ("Write 'planet' backwards, please", Intent("parts", (0,), quoted=True)),
        ("Verify what the others found.", Intent("check")),
        ("Vote on the answers.", Intent("compare")),
        ("Carry out the next step.", Intent("next")),
    ],
)
def test_a_subtask_is_read_as_plain_english(subtask: str, intent: Intent) -> None:
    assert read_intent(subtask, QUESTION) == intent


def test_the_truths_of_the_worked_question_are_right() -> None:
    problem = read_problem(QUESTION)
    assert problem is not None
    assert problem.truths == TRUTHS
