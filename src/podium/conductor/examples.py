"""Example plans for the full prompt, written for tasks unlike any that Podium grades or trains on.

The examples differ in their number of steps and in their topology. A prompt with n examples shows the first n that its
rules allow, so their order matters. A test parses each example.
"""

from __future__ import annotations

from typing import NamedTuple

from podium.workflow import Access, Step, Workflow


class PlanExample(NamedTuple):
    """A question and a completion with a plan for it."""

    question: str
    workers: int
    """How many workers the pool of the example has."""
    completion: str


EXAMPLES: tuple[PlanExample, ...] = (
    PlanExample(
        question=(
            "Our flat lease says: 'Either party may end this agreement with two months' notice to the end of "
            "a quarter.' If I hand in notice on 5 February, when is the earliest day that I am out, and what "
            "could the landlord object to?"
        ),
        workers=4,
        completion="""\
The date follows from a close reading, the objections from knowing the field. Both need only the question, so
two models can work side by side, and a third can join what they found.

model_id = [1, 3, 0]
subtasks = [
    "Work out the earliest day on which the lease can end if notice is given on 5 February. Count the two \
months first, then go to the next end of a quarter, and show each step.",
    "List the objections that a landlord could raise to a notice under this clause, such as its form, when \
it arrived and how the period is counted. One sentence each.",
    "Write the final answer for the tenant: the date, with the count that leads to it, and then the \
objections worth preparing for. If the date that you were given does not follow from the clause, correct it.",
]
access_list = [[], [], ["all"]]
""",
    ),
    PlanExample(
        question="Which two players met in the 1972 World Chess Championship, and in which city?",
        workers=3,
        completion="""\
This is one well-known fact. A single model that knows history can give it, and more steps would only cost.

model_id = [2]
subtasks = ["Name the two players of the 1972 World Chess Championship and the city where they met. Answer \
in one sentence."]
access_list = [[]]
""",
    ),
    PlanExample(
        question=(
            "This function is said to merge two sorted linked lists, but it now and then loses the tail of "
            "the longer one. Find the fault and give a corrected version:\n"
            "def merge(a, b): ... while a and b: ... return head.next"
        ),
        workers=5,
        completion="""\
Finding the fault comes before mending it, and the mended code should be read once more by another model that
has not talked itself into it.

model_id = [4, 0, 2]
subtasks = [
    "Trace the function by hand on the lists 1-3-9 and 2, and say in which line the rest of the longer list \
is lost, and why. Do not write new code yet.",
    "Using the diagnosis above, write the corrected function in full, keeping its name and its arguments.",
    "Check the corrected function on an empty list, on two lists of the same length and on one list that is \
much longer. If it fails on any, mend it. Answer with the final code and one sentence on what was wrong.",
]
access_list = [[], [0], [1]]
""",
    ),
    PlanExample(
        question=(
            "A soup for 6 takes 450 g lentils, 1.2 l stock and 40 minutes. I cook for 22, have two pots of 5 "
            "l each, and some guests avoid gluten. What do I buy, and how do I plan the evening?"
        ),
        workers=6,
        completion="""\
Amounts, ingredients and timing are three different matters. The timing depends on the amounts, since they
decide how many pots are in use; the ingredients do not.

model_id = [5, 1, 5, 3]
subtasks = [
    "Scale the recipe from 6 to 22 portions: grams of lentils and litres of stock. Say how much volume that \
is in all and whether two pots of 5 l hold it.",
    "Which usual ingredients of a lentil soup and of bought stock may contain gluten, and what is a safe \
replacement for each?",
    "From the amounts above, plan the evening: what is cooked in which pot, when it is started, and how much \
longer the larger pots take to come to the boil.",
    "Put together one reply for the cook: a shopping list with amounts, a note on gluten, and a timetable.",
]
access_list = [[], [], [0], [0, 1, 2]]
""",
    ),
    PlanExample(
        question=(
            "Translate this proverb so that it would sound natural on a poster in English, and explain the "
            "choice: 'Morgenstund hat Gold im Mund.'"
        ),
        workers=4,
        completion="""\
Taste differs, so I ask for two independent drafts and let a model with a good ear choose.

model_id = [0, 2, 1]
subtasks = [
    "Give three English renderings of the proverb that keep its rhyme or rhythm, each with a short comment.",
    "Give three English renderings of the proverb that a native reader would take for an English saying, \
each with a short comment.",
    "From all the drafts choose the one best suited to a poster, improve it where you can, and explain the \
choice in two sentences.",
]
access_list = [[], [], [0, 1]]
""",
    ),
    PlanExample(
        question=(
            "Here are the minutes of a two-hour planning meeting of our rowing club. Write an invitation to "
            "the next meeting that takes up what was left open."
        ),
        workers=3,
        completion="""\
First what was left open, then the invitation. A plain chain of two.

model_id = [1, 0]
subtasks = [
    "From the minutes, list every point that was left open, with the person who is to act, if one is named.",
    "Write a friendly invitation to the next meeting whose agenda takes up each of these open points.",
]
access_list = [[], [0]]
""",
    ),
    PlanExample(
        question=(
            "Our choir has 34 singers and wants to tour three towns by train in June, with 9,000 euros. Draft a "
            "plan that the committee can vote on."
        ),
        workers=5,
        completion="""\
Each part builds on all that was settled before it, and the draft should be read by somebody who did not write it.

model_id = [2, 4, 0, 3]
subtasks = [
    "Propose three towns in an order that makes short train rides, with dates in June and a reason for each.",
    "From this route, list what 34 people will pay for trains, beds and meals, and add it up. Say which figures \
are guesses.",
    "Write the draft for the committee: route, costs against the 9,000 euros, and the two decisions that are open.",
    "Read the draft against the route and the costs above. Mend what does not agree, and answer with the whole \
corrected draft.",
]
access_list = [[], ["all"], ["all"], ["all"]]
""",
    ),
    PlanExample(
        question=(
            "A short story of mine ends with a letter that nobody reads. Is the ending too bleak for a magazine "
            "for young readers, and how might it be changed?"
        ),
        workers=7,
        completion="""\
Three readers who do not know each other's views say more than one, and a fourth can weigh them.

model_id = [6, 1, 3, 5]
subtasks = [
    "As an editor of a magazine for young readers, say whether this ending is too bleak, and why.",
    "As a teacher, say what readers of twelve take from an ending in which a letter stays unread.",
    "Suggest three other endings that keep the unread letter, each in two sentences.",
    "Answer the author: weigh the views above, say whether to change the ending, and show the change that you \
would make.",
]
access_list = [[], [], [], ["all"]]
""",
    ),
)

SHORT_EXAMPLES: tuple[tuple[str, Workflow], ...] = (
    ("One can do it.", Workflow((Step(0, "Answer it step by step."),))),
    (
        "A program is exact.",
        Workflow(
            (Step(0, "Write a Python program that prints the answer."), Step(7, "Run it.", Access((0,))))
        ),
    ),
    (
        "Hard: two ways.",
        Workflow(
            (
                Step(0, "Solve it step by step."),
                Step(1, "Solve it another way."),
                Step(0, "Give the right answer.", Access(all=True)),
            )
        ),
    ),
)
"""Thoughts and plans for the style "short"."""
