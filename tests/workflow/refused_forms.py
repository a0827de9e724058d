"""Texts that are refused for their form: there are no three lists, or they break off.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import lists, refused

REFUSED_FORMS = [
    # -- nothing, or not a plan
    refused(
        "nothing at all",
        "",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    refused(
        "only the names",
        "I would fill in model_id, subtasks and access_list, but all workers look alike.",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found none of them.",
    ),
    refused(
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
    refused(
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
    refused(
        "no access list",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no access_list.",
    ),
    refused(
        "subtasks alone",
        'subtasks = ["Find it.", "Write it."]',
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no model_id and no access_list.",
    ),
    refused(
        "lists before and after the thought",
        """\
model_id = [2, 0]
</think>
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list after the <think> block, found no model_id.",
    ),
    refused(
        "three lists of two plans",
        """\
model_id = [2, 0]
access_list = [[], ["all"]]
model_id = [2, 0]
access_list = [[], ["all"]]""",
        "missing_list",
        "Expected the lists model_id, subtasks and access_list, found no subtasks.",
    ),
    refused(
        "a name in the plural",
        """\
¦model_ids = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "misnamed_list",
        "Expected a list called model_id, found 'model_ids'.",
    ),
    refused(
        "other names in JSON",
        '{"model_id": [2, 0], "tasks": ["Find it.", "Write it."], "access": [[], ["all"]]}',
        "misnamed_list",
        "Expected a list called subtasks, found 'tasks'.",
        shown='{"model_id": [2, 0], "¦tasks": ["Find it.", "Write it."], "access": [[],…',
    ),
    # -- not lists
    refused(
        "a number for a list",
        lists(model_id="¦1", subtasks='["Answer."]', access_list="[[]]"),
        "not_a_list",
        "Expected a list in square brackets for model_id, found '1'.",
    ),
    refused(
        "a word for a list",
        """\
model_id = [1]
subtasks = ["Answer."]
access_list: ¦none""",
        "not_a_list",
        "Expected a list in square brackets for access_list, found 'none'.",
    ),
    refused(
        "a list of steps in Markdown",
        """\
**model_id:** [2, 0]
**subtasks:**
¦1. Find it.
2. Write it.
**access_list:** [[], ["all"]]""",
        "not_a_list",
        "Expected a list in square brackets for subtasks, found '1. Find it.'.",
    ),
    refused(
        "a label at the very end",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list =¦""",
        "not_a_list",
        "Expected a list in square brackets for access_list, found the end of the text.",
    ),
    # -- cut off
    refused(
        "cut off in the numbers",
        "model_id = [2,¦",
        "unclosed_list",
        "Expected ']' at the end of model_id, found the end of the text.",
    ),
    refused(
        "cut off in a subtask",
        """\
model_id = [2, 0]
subtasks = ["Find it.", ¦"Write the an""",
        "unclosed_text",
        'Expected a closing " for a text of subtasks, found the end of the text.',
    ),
    refused(
        "cut off in the access list",
        lists(access_list='[[], ["all"¦'),
        "unclosed_list",
        "Expected ']' at the end of access_list, found the end of the text.",
    ),
    refused(
        "the end of a fence for a bracket",
        """\
```
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]¦
```""",
        "unclosed_list",
        "Expected ']' at the end of access_list, found the end of the fence.",
    ),
    refused(
        "a brace for a bracket",
        lists(access_list='[[], ["all"]¦}'),
        "missing_comma",
        "Expected ',' or ']' after an entry of access_list, found '}'.",
    ),
]
