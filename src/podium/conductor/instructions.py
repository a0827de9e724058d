"""The texts that instruct a chat model, in the styles "full" and "short", each for the two forms of a plan.

`prompt` combines these texts with the question and the pool.
"""

from __future__ import annotations

from podium.conductor.examples import EXAMPLES, SHORT_EXAMPLES
from podium.text.fencing import tilde_fence
from podium.workflow import (
    Acceptance,
    AccessRule,
    PlanError,
    PlanForm,
    PlanRules,
    Workflow,
    check,
    parse,
    render,
    thought_in,
)

_ROLE = """\
You lead a team of language models. You do not answer the user's question yourself: you decide who on the \
team does what, in at most {max_steps} {steps}, so that the team's last response is the best answer to \
the question.

In each step one model is given a subtask that you write. A subtask may ask for a solution from scratch, for \
one part of the work, for a check or a correction of what came before, for a joined answer, or for whatever \
else helps the models after it. Models differ in what they are good at and in what they cost: choose them by \
what a step needs, and spend no step that does not earn its price.

How a step is run:
- Its model always sees the user's question, and the subtask. Write for a reader who knows nothing of your plan.
- {seen}
- Steps that do not wait for one another run at the same time.
- The response of the last step goes to the user as it is, so the last subtask must ask for the complete \
answer."""

_LISTS_FORM = """\
Think first, briefly. Then write your plan as three Python lists of the same length, one entry for each step:
- model_id: the number of the model that takes the step, from the team as it is numbered below.
- subtasks: what the model is told to do, a string.
- access_list: which earlier steps it sees{access}"""

_OBJECT_FORM = """\
Write your plan as one JSON object, which begins with a short thought:
{{"thought": "...", "steps": [{{"worker": {worker}, "subtask": "...", "sees": []}}, ...]}}
- worker: {named} of the model that takes the step, from the team below.
- subtask: what the model is told to do, a string.
- sees: which earlier steps it sees{access}"""

_SEEN = {
    "lists": "Of the earlier steps it sees those on its access list alone, their subtasks and their responses.",
    "all_or_none": "Of the earlier steps it sees all or none, by its access list: their subtasks and their responses.",
}

_ACCESS = {
    "lists": """\
. [] for none, ["all"] for all of them, or the numbers of some of them, as in [0, 2]. Steps are numbered from 0, \
and a step can only see steps before it.""",
    "all_or_none": """\
: [] for none, or ["all"] for all of them. A step can only see steps before it, and nothing else may stand in \
its list.""",
}

_EXAMPLES_INTRO = (
    "Some examples. They are about other questions and other teams: learn the form, not the choices."
)

_LATER_ROUND = """\
You have planned for this question before. Your earlier rounds follow, oldest first: each plan with the \
final response that came of it. Look hard at the latest response. If it is right and complete, accept it by \
writing {accepted}

Otherwise write a new plan that mends what is wrong with it. In this plan {access} Nothing else of the \
earlier rounds is seen."""

_ACCEPTANCE = {"lists": "three empty lists", "structured": "an acceptance"}

_ACCESS_LATER = {
    "lists": """\
an access list may also be ["previous"], which shows the model the latest final response alone, and ["all"] \
shows that response together with all earlier steps of the new plan.""",
    "all_or_none": """\
["all"] shows the model the latest final response together with all earlier steps of the new plan.""",
}

_SECOND_TRY = """\
That plan cannot be run:

{error}

Write the plan again, whole and corrected: {form}."""
_WHOLE = {
    "lists": "the three lists, of the same length",
    "structured": """\
one JSON object with "thought" and "steps", or, if you cannot write JSON, three Python lists of the same length: \
model_id (numbers of workers, from 0), subtasks (strings) and access_list (a list for each step)""",
}

_SHORT_ROLE = """\
You lead a team. Do not answer the question: plan who does what, in at most {max_steps} {steps}. A worker sees the \
question, its subtask, and the earlier steps in {sees}: [] none, {some}["all"] all. The last step must answer the \
question. Let the strongest work, in few steps.
Write {form}. Examples (other teams):"""
_SHORT_FORM = {
    "lists": "a thought, then three lists of one length",
    "structured": "one JSON object",
}
_SHORT_LATER = """\
Your earlier rounds follow. If the last answer is right, write {accepted}
Else write a new plan{previous}."""
EXAMPLE_NAMES = ("ada", "bert", "cleo", "dan", "eva", "finn", "gwen", "python")
"""The names of the workers in examples of structured plans."""


def full_instructions(
    form: PlanForm, access: AccessRule, max_steps: int, examples: int, *, named: bool
) -> str:
    """Role, form of a plan and examples in the style "full".

    Args:
        examples: the most examples that are shown.
        named: whether a structured plan has the names of workers, not their numbers.
    """
    role = _ROLE.format(max_steps=max_steps, steps=_step_noun(max_steps), seen=_SEEN[access])
    template = _LISTS_FORM if form == "lists" else _OBJECT_FORM
    plan_form = template.format(
        access=_ACCESS[access], worker='"..."' if named else 0, named="the name" if named else "the number"
    )
    plans = [
        (example, parse(example.completion, PlanRules(example.workers, max_steps=max_steps, access=access)))
        for example in EXAMPLES
    ]
    fitting = [(example, plan) for example, plan in plans if not isinstance(plan, PlanError)][:examples]
    shown = [
        f"Example {number}. Question:\n{tilde_fence(example.question)}\nPlan:\n"
        f"{tilde_fence(_completion(example.completion, plan, form, named=named))}"
        for number, (example, plan) in enumerate(fitting, start=1)
    ]
    return "\n\n".join([f"{role}\n\n{plan_form}", *([_EXAMPLES_INTRO] if shown else []), *shown])


def short_instructions(form: PlanForm, access: AccessRule, max_steps: int, *, named: bool) -> str:
    """Role and form of a plan in the style "short": at most 300 tokens of a small model's tokenizer."""
    some = "" if access == "all_or_none" else "[0] step 0, "
    role = _SHORT_ROLE.format(
        max_steps=max_steps,
        steps=_step_noun(max_steps),
        sees="access_list" if form == "lists" else '"sees"',
        some=some,
        form=_SHORT_FORM[form],
    )
    shown = [
        f"{thought}\n{render(workflow)}"
        if form == "lists"
        else render(workflow, form, names=EXAMPLE_NAMES if named else (), thought=thought)
        for thought, workflow in SHORT_EXAMPLES
        if check(workflow, PlanRules(workers=len(EXAMPLE_NAMES), max_steps=max_steps, access=access)) is None
    ]
    return "\n\n".join([role, *shown])


def later_round_text(form: PlanForm, access: AccessRule, *, short: bool) -> str:
    """The text above the earlier rounds: how the planner accepts their answer, and what else it may write."""
    accepted = render(Acceptance(), form, thought="...")
    if short:
        previous = '; "previous" shows that answer to a step' if access == "lists" else ""
        return _SHORT_LATER.format(accepted=accepted, previous=previous)
    return _LATER_ROUND.format(accepted=f"{_ACCEPTANCE[form]}:\n\n{accepted}", access=_ACCESS_LATER[access])


def second_try_text(error: PlanError, form: PlanForm) -> str:
    """The text that a planner gets after a completion that was no plan."""
    return _SECOND_TRY.format(error=tilde_fence(str(error)), form=_WHOLE[form])


def _step_noun(max_steps: int) -> str:
    return "step" if max_steps == 1 else "steps"


def _completion(completion: str, plan: Workflow | Acceptance, form: PlanForm, *, named: bool) -> str:
    if form == "lists":
        return completion.strip()
    thought = " ".join(thought_in(completion).split())
    return render(plan, form, names=EXAMPLE_NAMES if named else (), thought=thought)
