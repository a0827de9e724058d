"""Texts that are refused for an access list, and places that are hard to show.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import lists, refused

READ = '"Read all of the question with great care and find its two dates."'

REFUSED_ACCESS = [
    # -- access lists
    refused(
        "a step that reads itself",
        lists(access_list="[[], [¦1]]"),
        "self_reference",
        "Expected step 1 to read steps before it (0 alone), found 1, the step itself: steps count from 0.",
    ),
    refused(
        "a first step that reads itself",
        lists(access_list="[[¦0], []]"),
        "self_reference",
        "Expected step 0 to read nothing, as the first of all, found 0, the step itself: steps count from 0.",
    ),
    refused(
        "a step that reads a later one",
        lists(access_list="[[¦1], []]"),
        "forward_reference",
        "Expected step 0 to read nothing, as the first of all, found 1, a later step: steps count from 0.",
    ),
    refused(
        "a step that reads one that does not exist",
        lists(access_list="[[], [0, ¦7]]"),
        "unknown_step",
        "Expected step 1 to read steps before it (0 alone), found 7, not a step: steps count from 0.",
    ),
    refused(
        "a negative step",
        lists(access_list="[[], [¦-1]]"),
        "unknown_step",
        "Expected step 1 to read steps before it (0 alone), found -1, not a step: steps count from 0.",
    ),
    refused(
        "a step that does not exist, beside all",
        lists(access_list='[[], ["all", ¦5]]'),
        "unknown_step",
        "Expected step 1 to read steps before it (0 alone), found 5, not a step: steps count from 0.",
    ),
    refused(
        "numbers without brackets",
        lists(access_list="[[], ¦0]"),
        "bad_access",
        "Expected [], [\"all\"] or numbers of earlier steps for step 1, found '0': write [0].",
    ),
    refused(
        "a word that means nothing",
        lists(access_list='[[], [¦"everything"]]'),
        "bad_access",
        "Expected [], [\"all\"] or numbers of earlier steps for step 1, found 'everything'.",
    ),
    refused(
        "a list in an entry",
        lists(access_list="[[], [¦[0]]]"),
        "bad_access",
        'Expected [], ["all"] or numbers of earlier steps for step 1, found a list.',
    ),
    refused(
        "none beside a number",
        lists(model_id="[0, 1, 2]", subtasks='["A", "B", "C"]', access_list='[[], [], ¦["none", 1]]'),
        "bad_access",
        'Expected "none" alone in the access list of step 2, found more beside it.',
    ),
    refused(
        "the round before, in the first round",
        lists(access_list='[[], ¦[0, "previous"]]'),
        "no_previous",
        'Expected no "previous" in the first round, found it at step 1: no round came before.',
    ),
    # -- where several things are wrong, and where the place is hard to show
    refused(
        "the last plan is wrong though the first was right",
        """\
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]
Or:
model_id = [¦9, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]""",
        "unknown_worker",
        "Expected a worker of the pool (0 to 2) for step 0, found 9.",
    ),
    refused(
        "a long line",
        lists(
            model_id="[0, 1]",
            subtasks=f'[{READ}, "Count the days between them.", "Mend it."]',
            access_list="[[], [0]]",
        ),
        "unequal_lists",
        "Expected three lists of one length, found 2 in model_id, 3 in subtasks and 2 in access_list.",
        shown='subtasks = ¦["Read all of the question with great care and find its two d…',
    ),
    refused(
        "the middle of a long line",
        lists(
            model_id="[0, 1, 2]",
            subtasks=f'[{READ}, 7 , "Count the days between them."]',
            access_list="[[], [0], []]",
        ),
        "bad_subtask",
        "Expected text in quotation marks as subtask of step 1, found '7'.",
        shown='…great care and find its two dates.", ¦7 , "Count the days between them."]',
    ),
    refused(
        "tabs before the place",
        'model_id\t=\t[0,\t9]\nsubtasks = ["A", "B"]\naccess_list = [[], []]',
        "unknown_worker",
        "Expected a worker of the pool (0 to 2) for step 1, found 9.",
        shown="model_id = [0, ¦9]",
    ),
]
