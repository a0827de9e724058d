"""Strategies of hypothesis for valid workflows and for texts that look like plans."""

from __future__ import annotations

from hypothesis import strategies as st

from podium.workflow import Access, Step, Workflow, render

WORKERS = 4

# Any character but halves of surrogate pairs, and often those that mean something in a plan.
_MEANINGFUL = st.sampled_from("\"'`“”’\\[],#/ \n\r\t\x00\x7f\u2028😀s") | st.sampled_from(
    ['"""', "\\n", "\\u0041", "</think>", "<think>", "model_id = [0]", "access_list: ["]
)
_CHARACTERS = st.characters(exclude_categories=("Cs",))
subtasks = (
    st.lists(_MEANINGFUL | _CHARACTERS, min_size=1, max_size=30)
    .map(lambda parts: "".join(parts).strip())
    .filter(bool)
)


@st.composite
def accesses(draw: st.DrawFn, position: int, *, later_round: bool) -> Access:
    if draw(st.booleans()):
        return Access(all=True)
    steps = draw(st.sets(st.integers(0, position - 1))) if position else set()
    return Access(steps=tuple(sorted(steps)), previous=later_round and draw(st.booleans()))


@st.composite
def workflows(draw: st.DrawFn, *, later_round: bool = False, max_steps: int = 5) -> Workflow:
    """Valid workflows for a pool of `WORKERS`."""
    count = draw(st.integers(1, max_steps))
    return Workflow(
        tuple(
            Step(
                draw(st.integers(0, WORKERS - 1)),
                draw(subtasks),
                draw(accesses(position, later_round=later_round)),
            )
            for position in range(count)
        )
    )


_WORDS = [
    "model_id",
    "subtasks",
    "access_list",
    "=",
    ":",
    "[",
    "]",
    "[[",
    "]]",
    ",",
    "0",
    "1",
    "-1",
    '"',
    "'",
    '"""',
    "“",
    "”",
    "‘",
    "’",
    "`",
    "```",
    "```python",
    "all",
    '"all"',
    '"previous"',
    "None",
    "-",
    "#",
    "//",
    "<think>",
    "</think>",
    "\\",
    "\\u",
    "{",
    "}",
    "(",
    "list[",
    "accept",
    "task",
    "*",
    '"Do_it."',
    "model_id=[0]",
    'subtasks=["Do_it."]',
    "access_list=[[]]",
    "model_id=[",
    'subtasks=["',
    "access_list=[",
    '"thought":',
    '{"steps":[',
    '{"worker":0,',
    '"subtask":"Do_it.",',
    '"sees":[]}',
    "]}",
    '{"accept":true}',
]
_PIECES = st.sampled_from([*_WORDS, " ", "\n", "\ud83d"])
plan_like = st.lists(_PIECES | st.text(max_size=3), max_size=80).map("".join)
"""Texts that are put together from the pieces of plans, seldom valid."""


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The text of a valid workflow in either form with a stretch of it replaced by a piece of a plan."""
    text = render(draw(workflows(later_round=True)), draw(st.sampled_from(["lists", "structured"])))
    start = draw(st.integers(0, len(text)))
    return text[:start] + draw(_PIECES) + text[start + draw(st.integers(0, 3)) :]
