"""Texts that are refused for their sense: lengths, workers and subtasks that cannot be run.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import Refused, lists

REFUSED_SENSE = [
    # -- lengths
    Refused(
        "a subtask too many",
        lists(model_id="[1]", access_list="[[]]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 1 in model_id, 2 in subtasks and 1 in access_list.
    subtasks = ["Find it.", "Write it."]
               ^""",
    ),
    Refused(
        "a worker too few",
        lists(model_id="[2]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 1 in model_id, 2 in subtasks and 2 in access_list.
    model_id = [2]
               ^""",
    ),
    Refused(
        "an access list too few",
        lists(access_list='[["all"]]'),
        "unequal_lists",
        """\
Expected three lists of one length, found 2 in model_id, 2 in subtasks and 1 in access_list.
    access_list = [["all"]]
                  ^""",
    ),
    Refused(
        "no access list for a single step",
        lists(model_id="[1]", subtasks='["Answer."]', access_list="[]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 1 in model_id, 1 in subtasks and 0 in access_list.
    access_list = []
                  ^""",
    ),
    Refused(
        "three lengths",
        lists(model_id="[1]", access_list="[[], [], []]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 1 in model_id, 2 in subtasks and 3 in access_list.
    subtasks = ["Find it.", "Write it."]
               ^""",
    ),
    Refused(
        "six steps",
        lists(
            model_id="[0, 1, 2, 0, 1, 2]",
            subtasks='["A", "B", "C", "D", "E", "F"]',
            access_list='[[], [], [], [], [], ["all"]]',
        ),
        "too_many_steps",
        """\
Expected at most 5 steps, found 6.
    model_id = [0, 1, 2, 0, 1, 2]
                               ^""",
    ),
    Refused(
        "two steps where one is allowed",
        lists(),
        "too_many_steps",
        """\
Expected at most 1 step, found 2.
    model_id = [2, 0]
                   ^""",
        max_steps=1,
    ),
    Refused(
        "acceptance in the first round",
        lists(model_id="[]", subtasks="[]", access_list="[]"),
        "empty_plan",
        "Expected at least one step, found none: three empty lists accept an answer, and there is none.",
    ),
    Refused(
        "half an acceptance",
        lists(model_id="[]", subtasks="[]", access_list="[[], []]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 0 in model_id, 0 in subtasks and 2 in access_list.
    access_list = [[], []]
                  ^""",
        later_round=True,
    ),
    # -- workers
    Refused(
        "a worker that does not exist",
        lists(model_id="[2, 3]"),
        "unknown_worker",
        """\
Expected a worker of the pool (0 to 2) for step 1, found 3.
    model_id = [2, 3]
                   ^""",
    ),
    Refused(
        "workers counted from one",
        lists(model_id="[3, 1]"),
        "unknown_worker",
        """\
Expected a worker of the pool (0 to 2) for step 0, found 3.
    model_id = [3, 1]
                ^""",
    ),
    Refused(
        "a negative number",
        lists(model_id="[-1, 0]"),
        "unknown_worker",
        """\
Expected a worker of the pool (0 to 2) for step 0, found -1.
    model_id = [-1, 0]
                ^""",
    ),
    Refused(
        "a pool of one",
        lists(model_id="[0, 1]"),
        "unknown_worker",
        """\
Expected a worker of the pool (0 alone) for step 1, found 1.
    model_id = [0, 1]
                   ^""",
        workers=1,
    ),
    Refused(
        "a worker's name",
        lists(model_id='["gpt-5", "qwen3"]'),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found 'gpt-5'.
    model_id = ["gpt-5", "qwen3"]
                ^""",
    ),
    Refused(
        "a fraction",
        lists(model_id="[2.0, 0]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found '2.0'.
    model_id = [2.0, 0]
                ^""",
    ),
    Refused(
        "true and false",
        lists(model_id="[True, False]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found 'True'.
    model_id = [True, False]
                ^""",
    ),
    Refused(
        "a number of many digits",
        lists(model_id="[99999999999999999999999999999999, 0]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found '99999999999999999999999…'.
    model_id = [99999999999999999999999999999999, 0]
                ^""",
    ),
    Refused(
        "placeholders of the format",
        lists(model_id="[...]", subtasks='["..."]', access_list="[[]]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found '...'.
    model_id = [...]
                ^""",
    ),
    Refused(
        "an expression",
        lists(model_id="[1+1, 0]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found '1+1'.
    model_id = [1+1, 0]
                ^""",
    ),
    Refused(
        "code",
        lists(model_id='[__import__("os").getpid(), 0]'),
        "unquoted_text",
        """\
Expected ',' or ']' after '__import__(' in model_id, found '"': put text in quotation marks.
    model_id = [__import__("os").getpid(), 0]
                ^""",
    ),
    # -- subtasks
    Refused(
        "an empty subtask",
        lists(subtasks='["Find it.", ""]'),
        "empty_subtask",
        """\
Expected a subtask for step 1, found an empty text.
    subtasks = ["Find it.", ""]
                            ^""",
    ),
    Refused(
        "a blank subtask",
        lists(subtasks='[" \\n\\t", "Write it."]'),
        "empty_subtask",
        """\
Expected a subtask for step 0, found an empty text.
    subtasks = [" \\n\\t", "Write it."]
                ^""",
    ),
    Refused(
        "a number as subtask",
        lists(subtasks='["Find it.", 2]'),
        "bad_subtask",
        """\
Expected text in quotation marks as subtask of step 1, found '2'.
    subtasks = ["Find it.", 2]
                            ^""",
    ),
    Refused(
        "none as subtask",
        lists(subtasks='["Find it.", None]'),
        "bad_subtask",
        """\
Expected text in quotation marks as subtask of step 1, found 'None'.
    subtasks = ["Find it.", None]
                            ^""",
    ),
    Refused(
        "half a surrogate pair",
        lists(subtasks='["Find it \\ud83d.", "Write it."]'),
        "broken_text",
        """\
Expected whole characters in the subtask of step 0, found half a surrogate pair, U+D83D.
    subtasks = ["Find it \\ud83d.", "Write it."]
                ^""",
    ),
]
