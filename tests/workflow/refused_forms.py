"""Texts that are refused for their form: there are no three lists, or they break off.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import Refused, lists

REFUSED_FORMS = [
    # -- nothing, or not a plan
    Refused(
        "nothing at all",
        "",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    Refused(
        "blanks",
        "  \n\n\t ",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    Refused(
        "an answer and no plan",
        "The answer is 42.",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    Refused(
        "a refusal",
        "I am sorry, but I cannot help with that.",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    Refused(
        "only the names",
        "I would fill in model_id, subtasks and access_list, but all workers look alike.",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    Refused(
        "a plan in the thought alone",
        """\
<think>
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]
</think>
The plan is above.""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list after the <think> block, found none of them.",
    ),
    Refused(
        "a plan before a lone end of thought",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]
</think>
Done.""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list after the <think> block, found none of them.",
    ),
    # -- lists missing
    Refused(
        "no access list",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no access_list.",
    ),
    Refused(
        "no worker numbers",
        """\
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no model_id.",
    ),
    Refused(
        "subtasks alone",
        'subtasks = ["Find it.", "Write it."]',
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no model_id and no access_list.",
    ),
    Refused(
        "lists before and after the thought",
        """\
model_id = [2, 0]
</think>
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list after the <think> block, found no model_id.",
    ),
    Refused(
        "three lists of two plans",
        """\
model_id = [2, 0]
access_list = [[], ["all"]]
model_id = [2, 0]
access_list = [[], ["all"]]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no subtasks.",
    ),
    Refused(
        "a name in the plural",
        """\
model_ids = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "misnamed_list",
        """\
Expected a list called model_id, found 'model_ids'.
    model_ids = [2, 0]
    ^""",
    ),
    Refused(
        "other names in JSON",
        '{"model_id": [2, 0], "tasks": ["Find it.", "Write it."], "access": [[], ["all"]]}',
        "misnamed_list",
        """\
Expected a list called subtasks, found 'tasks'.
    {"model_id": [2, 0], "tasks": ["Find it.", "Write it."], "access": [[],…
                          ^""",
    ),
    Refused(
        "another name for the access list",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_lists = [[], ["all"]]""",
        "misnamed_list",
        """\
Expected a list called access_list, found 'access_lists'.
    access_lists = [[], ["all"]]
    ^""",
    ),
    # -- not lists
    Refused(
        "a number for a list",
        lists(model_id="1", subtasks='["Answer."]', access_list="[[]]"),
        "not_a_list",
        """\
Expected a list in square brackets for model_id, found '1'.
    model_id = 1
               ^""",
    ),
    Refused(
        "a string for a list",
        lists(model_id="[1]", subtasks='"Answer the question."', access_list="[[]]"),
        "not_a_list",
        """\
Expected a list in square brackets for subtasks, found '"Answer the question."'.
    subtasks = "Answer the question."
               ^""",
    ),
    Refused(
        "a word for a list",
        """\
model_id = [1]
subtasks = ["Answer."]
access_list: none""",
        "not_a_list",
        """\
Expected a list in square brackets for access_list, found 'none'.
    access_list: none
                 ^""",
    ),
    Refused(
        "a tuple",
        lists(model_id="(2, 0)"),
        "not_a_list",
        """\
Expected a list in square brackets for model_id, found '(2, 0)'.
    model_id = (2, 0)
               ^""",
    ),
    Refused(
        "a call",
        lists(model_id="list(range(2))"),
        "not_a_list",
        """\
Expected a list in square brackets for model_id, found 'list(range(2))'.
    model_id = list(range(2))
               ^""",
    ),
    Refused(
        "prose after each label",
        """\
model_id: worker 2, then worker 0
subtasks: find it, then write it
access_list: the second sees the first""",
        "not_a_list",
        """\
Expected a list in square brackets for model_id, found 'worker 2, then worker 0'.
    model_id: worker 2, then worker 0
              ^""",
    ),
    Refused(
        "a list of steps in Markdown",
        """\
**model_id:** [2, 0]
**subtasks:**
1. Find it.
2. Write it.
**access_list:** [[], ["all"]]""",
        "not_a_list",
        """\
Expected a list in square brackets for subtasks, found '1. Find it.'.
    1. Find it.
    ^""",
    ),
    Refused(
        "a label at the very end",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list =""",
        "not_a_list",
        """\
Expected a list in square brackets for access_list, found the end of the text.
    access_list =
                 ^""",
    ),
    # -- cut off
    Refused(
        "cut off in the numbers",
        "model_id = [2,",
        "unclosed_list",
        """\
Expected ']' at the end of model_id, found the end of the text.
    model_id = [2,
                  ^""",
    ),
    Refused(
        "cut off in a subtask",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write the an""",
        "unclosed_text",
        """\
Expected a closing " for a text of subtasks, found the end of the text.
    subtasks = ["Find it.", "Write the an
                            ^""",
    ),
    Refused(
        "cut off between subtasks",
        """\
model_id = [2, 0]
subtasks = ["Find it.",
    """,
        "unclosed_list",
        """\
Expected ']' at the end of subtasks, found the end of the text.
    subtasks = ["Find it.",
                           ^""",
    ),
    Refused(
        "cut off in the access list",
        lists(access_list='[[], ["all"'),
        "unclosed_list",
        """\
Expected ']' at the end of access_list, found the end of the text.
    access_list = [[], ["all"
                             ^""",
    ),
    Refused(
        "cut off before the last bracket",
        lists(access_list='[[], ["all"]'),
        "unclosed_list",
        """\
Expected ']' at the end of access_list, found the end of the text.
    access_list = [[], ["all"]
                              ^""",
    ),
    Refused(
        "the end of a fence for a bracket",
        """\
```
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]
```""",
        "unclosed_list",
        """\
Expected ']' at the end of access_list, found the end of the fence.
    access_list = [[], ["all"]
                              ^""",
    ),
    Refused(
        "a brace for a bracket",
        lists(access_list='[[], ["all"]}'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of access_list, found '}'.
    access_list = [[], ["all"]}
                              ^""",
    ),
]
