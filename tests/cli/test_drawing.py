import io
from dataclasses import replace

import pytest
from rich.console import Console

from podium.cli.drawing import print_trace
from podium.trace import Attempt, Plan, Reply, RoundTrace, Span, Trace
from podium.types import Message, Price, Profile, Question, Spent, Usage
from podium.workflow import Acceptance, Access, PlanError, Step, Workflow

WORKFLOW = Workflow(
    (
        Step(0, "Add."),
        Step(1, "Doubt."),
        Step(0, "Guess.", Access(steps=(0,))),
        Step(1, "Check.", Access(steps=(0, 1), previous=True)),
    )
)
UNCLOSED = PlanError("unclosed", 'Expected "]".', "model_id = [0", 13)
PLAN = 'model_id = [0, 1, 0, 1]\nsubtasks = ["Add.", "Doubt.", "Guess.", "Check."]\naccess_list = ...'


def said(text, **more):
    return Reply(text, Usage(input_tokens=100, output_tokens=20), **more)


def span(position, **changes):
    values = {
        "position": position,
        "worker": ("ada", "bob")[position % 2],
        "subtask": ("Add.", "Doubt.", "Guess.", "Check.")[position],
        "status": "done",
        "messages": (Message(role="user", content=f"message {position}"),),
        "reply": said(f"response {position}"),
        "spent": Spent(Usage(input_tokens=100, output_tokens=20), 0.00012),
        "started_s": 1.0,
        "ended_s": 2.5,
        "attempts": (Attempt(worker="ada", started_s=1.0, ended_s=2.5),),
    }
    return Span.model_validate(values | changes)


def trace(**changes):
    timeout = Attempt(worker="bob", started_s=1.0, ended_s=1.5, error_kind="timeout")
    spans = (
        span(0, reply=said("long " * 200)),
        span(1, status="failed", reply=None, error="No answer within 3 s.", attempts=(timeout, timeout)),
        span(2, status="skipped", reply=None, messages=(), attempts=()),
        span(3, reads=(0, 1), answered_by="gus", reply=said("\x1b[31m[bold]5[/bold]")),
    )
    rounds = (
        RoundTrace(
            plan=Plan(PLAN, WORKFLOW, Spent(Usage(output_tokens=40)), seconds=0.2),
            spans=spans,
        ),
        RoundTrace(plan=Plan(PLAN, WORKFLOW), spans=(span(3, reads=(0, 1), status="refused"),)),
        RoundTrace(plan=Plan("model_id = []", Acceptance())),
    )
    values = {
        "id": "0123456789abcdef",
        "question": Question(text="What is [2] + 3?"),
        "pool": (Profile(name="ada", price=Price(input=1)), Profile(name="bob")),
        "planner": "conductor",
        "seed": "0",
        "rounds": rounds,
        "answer": "5\x07\n```python\nprint(5)\n```",
        "status": "ok",
        "started_at": "2026-03-01T10:00:00+00:00",
        "seconds": 3.25,
    }
    return Trace.model_validate(values | changes)


def drawn(shown, *, full=False, terminal=False):
    stream = io.StringIO()
    console = Console(
        file=stream, width=100, force_terminal=terminal, highlight=False, markup=False, emoji=False
    )
    print_trace(shown, console, full=full)
    return stream.getvalue()


def test_a_trace_is_drawn_whole(snapshot):
    assert drawn(trace()) == snapshot


def test_a_plan_that_could_not_be_read_is_drawn_with_its_caret(snapshot):
    unread = RoundTrace(plan=Plan("model_id = [0", UNCLOSED))
    assert (
        drawn(trace(rounds=(unread,), answer=None, status="failed", error="There is no plan to run."))
        == snapshot
    )


def test_a_plan_that_was_changed_before_it_ran_is_drawn_with_the_reason():
    (round_, *rest) = trace().rounds
    reason = "Kept with large: its prompt cache holds 12,400 tokens."
    kept = round_.model_copy(update={"plan": replace(round_.plan, reason=reason)})
    assert "Kept with large: its prompt cache holds 12,400 tokens." in drawn(trace(rounds=(kept, *rest)))


def test_a_plan_that_was_tried_again_is_drawn_with_how_its_tries_failed():
    (round_, *rest) = trace().rounds
    failed = Attempt(worker="chief", started_s=0.0, ended_s=1.0, error_kind="timeout", error="Too late.")
    tries = (failed, Attempt(worker="chief", started_s=2.0, ended_s=3.0))
    planned = round_.model_copy(update={"plan": replace(round_.plan, attempts=tries)})
    assert ", 2 attempts (timeout)\n" in drawn(trace(rounds=(planned, *rest)))
    again = round_.model_copy(update={"plan": replace(round_.plan, attempts=tries[1:] * 2)})
    assert drawn(trace(rounds=(again, *rest))) == drawn(trace())


def test_full_drawing_shows_whole_texts_and_sent_messages():
    whole = drawn(trace(), full=True)
    assert "long " * 15 in whole
    assert whole.count("long") == 200
    assert [f"message {n}" in whole for n in range(4)] == [True, True, False, True]
    assert 'subtasks = ["Add.", "Doubt.", "Guess.", "Check."]' in whole


def test_a_rejected_plan_is_drawn_with_error_and_cost_and_full_shows_more():
    spent = Spent(Usage(output_tokens=9), 0.02)
    rejected = Plan("model_id = [0", UNCLOSED, spent, reasoning="Hm.")
    sent = (Message(role="system", content="You lead a team."),)
    parameters = {"model": "m", "temperature": 0.5}
    planned = RoundTrace(
        plan=Plan(PLAN, WORKFLOW, messages=sent, rejected=(rejected,), reasoning="Well, ada."),
        spans=(span(0, reply=said("5", reasoning="Two and three.", parameters=parameters)),),
    )  # fmt: skip
    shown, whole = drawn(trace(rounds=(planned,))), drawn(trace(rounds=(planned,)), full=True)
    for drawing in (shown, whole):
        assert "Rejected plan  9 tokens, $0.020" in drawing
        assert 'Expected "]".' in drawing
    for text in (
        "prompt, system: You lead a team.",
        "thought: Hm.",
        "thought: Well, ada.",
        "thought: Two and three.",
    ):
        assert text in whole
        assert text not in shown
    assert 'parameters: {"model": "m", "temperature": 0.5}' in whole


@pytest.mark.parametrize("full", [True, False])
def test_drawing_escapes_control_sequences_even_on_a_terminal(full):
    shown = drawn(trace(), full=full, terminal=True)
    assert "\x1b[" in shown
    assert "\x1b[31m[bold]5" not in shown
    assert "\x07" not in shown
    assert "␛[31m[bold]5[/bold]" in shown


def test_a_long_line_of_an_answer_is_not_broken():
    line = "word " * 100
    assert f"\n{line.strip()}\n" in drawn(trace(answer=line))


def test_a_degraded_answer_says_why_before_it_is_given():
    shown = drawn(trace(status="degraded", error="The last step did not succeed."))
    assert shown.index("Degraded: The last step did not succeed.") < shown.index("\nAnswer\n")


def test_drawing_marks_a_cached_answer():
    reply = said("5", cached=True, latency_s=3.5)
    kept = span(0, reply=reply, spent=Spent(reply.usage, saved_usd=0.0125), attempts=())
    shown = drawn(trace(rounds=(RoundTrace(plan=Plan(PLAN, WORKFLOW), spans=(kept,)),)))
    assert "120 tokens, out of the cache ($0.013 and 3.50 s when it was made)" in shown
    assert "simulated" not in shown


def test_an_accepted_step_and_a_planned_limit_of_tokens_are_named():
    limited = RoundTrace(plan=Plan(PLAN, WORKFLOW), spans=(span(0, max_tokens=2048),))
    ends = RoundTrace(plan=Plan("model_id = []", Acceptance(), accepted_step=(0, 0)))
    shown = drawn(trace(rounds=(limited, ends)))
    assert "sees the question alone, may write 2,048 tokens" in shown
    assert "Round 2: accepted the response of step 0 in round 1" in shown
