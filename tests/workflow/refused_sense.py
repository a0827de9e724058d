"""Texts that are refused for their sense: lengths, workers and subtasks that cannot be run.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import lists, refused

REFUSED_SENSE = [
    # -- lengths
    refused(
        "a subtask too many",
        lists(model_id="[1]", subtasks='¦["Find it.", "Write it."]', access_list="[[]]"),
        "unequal_lists",
        "Expected three lists of one length, found 1 in model_id, 2 in subtasks and 1 in access_list.",
    ),
    refused(
        "a worker too few",
        lists(model_id="¦[2]"),
        "unequal_lists",
        "Expected three lists of one length, found 1 in model_id, 2 in subtasks and 2 in access_list.",
    ),
    refused(
        "an access list too few",
        lists(access_list='¦[["all"]]'),
        "unequal_lists",
        "Expected three lists of one length, found 2 in model_id, 2 in subtasks and 1 in access_list.",
    ),
    refused(
        "three lengths",
        lists(model_id="[1]", subtasks='¦["Find it.", "Write it."]', access_list="[[], [], []]"),
        "unequal_lists",
        "Expected three lists of one length, found 1 in model_id, 2 in subtasks and 3 in access_list.",
    ),
    refused(
        "six steps",
        lists(
            model_id="[0, 1, 2, 0, 1, ¦2]",
            subtasks='["A", "B", "C", "D", "E", "F"]',
            access_list='[[], [], [], [], [], ["all"]]',
        ),
        "too_many_steps",
        "Expected at most 5 steps, found 6.",
    ),
    refused(
        "two steps where one is allowed",
        lists(model_id="[2, ¦0]"),
        "too_many_steps",
        "Expected at most 1 step, found 2.",
        max_steps=1,
    ),
    refused(
        "acceptance in the first round",
        lists(model_id="[]", subtasks="[]", access_list="[]"),
        "empty_plan",
        "Expected at least one step, found none: three empty lists accept an answer, and there is none.",
    ),
    refused(
        "half an acceptance",
        lists(model_id="[]", subtasks="[]", access_list="¦[[], []]"),
        "unequal_lists",
        "Expected three lists of one length, found 0 in model_id, 0 in subtasks and 2 in access_list.",
        later_round=True,
    ),
    # -- workers
    refused(
        "a worker that does not exist",
        lists(model_id="[2, ¦3]"),
        "unknown_worker",
        "Expected a worker of the pool (0 to 2) for step 1, found 3.",
    ),
    refused(
        "a negative number",
        lists(model_id="[¦-1, 0]"),
        "unknown_worker",
        "Expected a worker of the pool (0 to 2) for step 0, found -1.",
    ),
    refused(
        "a pool of one",
        lists(model_id="[0, ¦1]"),
        "unknown_worker",
        "Expected a worker of the pool (0 alone) for step 1, found 1.",
        workers=1,
    ),
    refused(
        "a worker's name",
        lists(model_id='[¦"gpt-5", "qwen3"]'),
        "bad_worker",
        "Expected a worker's number (0 to 2) for step 0, found 'gpt-5'.",
    ),
    refused(
        "a number of many digits",
        lists(model_id="[¦99999999999999999999999999999999, 0]"),
        "bad_worker",
        "Expected a worker's number (0 to 2) for step 0, found '99999999999999999999999…'.",
    ),
    # -- subtasks
    refused(
        "an empty subtask",
        lists(subtasks='["Find it.", ¦""]'),
        "empty_subtask",
        "Expected a subtask for step 1, found an empty text.",
    ),
    refused(
        "a blank subtask",
        lists(subtasks='[¦" \\n\\t", "Write it."]'),
        "empty_subtask",
        "Expected a subtask for step 0, found an empty text.",
    ),
    refused(
        "a number as subtask",
        lists(subtasks='["Find it.", ¦2]'),
        "bad_subtask",
        "Expected text in quotation marks as subtask of step 1, found '2'.",
    ),
    refused(
        "half a surrogate pair",
        lists(subtasks='[¦"Find it \\ud83d.", "Write it."]'),
        "broken_text",
        "Expected whole characters in the subtask of step 0, found half a surrogate pair, U+D83D.",
    ),
]
