"""Completions with thoughts, drafts and second plans, and the workflow that each must give.

Read with three workers and five steps at most.
"""

from __future__ import annotations

from workflow_cases import ONE, Accepted, lists

ACCEPTED_DRAFTS = [
    # -- thoughts
    Accepted(
        "a thought before it",
        '<think>Worker 2 finds things.</think>\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\n'
        'access_list = [[], ["all"]]',
    ),
    Accepted(
        "a draft in the thought",
        """<think>
model_id = [1]
subtasks = ["Do all."]
access_list = [[]]
No, better in two steps.
</think>
"""
        + lists(),
    ),
    Accepted(
        "a broken draft in a thought that only closes, its opening being part of the prompt",
        """Maybe model_id = [1, and subtasks = ["Do all
</think>

"""
        + lists(),
    ),
    Accepted("a thought that nobody closes", "<think>\nI split it in two.\n" + lists()),
    Accepted(
        "a long tag in capitals",
        '<THINKING>model_id = [9]</THINKING>model_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\n'
        'access_list = [[], ["all"]]',
    ),
    Accepted(
        "two thoughts, one between the lists",
        "<think>first</think>model_id = [2, 0]\n<think>model_id = [1]?</think>\n"
        'subtasks = ["Find it.", "Write it."]\naccess_list = [[], ["all"]]',
    ),
    # -- several triples
    Accepted(
        "two plans, the last counts",
        """model_id = [1]
subtasks = ["Answer."]
access_list = [[]]

On reflection, two steps are better:

"""
        + lists(),
    ),
    Accepted(
        "a second plan that was cut off",
        """model_id = [1]
subtasks = ["Answer."]
access_list = [[]]

Or rather:
model_id = [2, 0]
subtasks = ["Find it.", "Wri""",
        ONE,
    ),
    Accepted(
        "the format explained after the plan",
        """model_id = [1]
subtasks = ["Answer."]
access_list = [[]]
(Here model_id = [the workers chosen], and access_list = [what each may see].)""",
        ONE,
    ),
    Accepted(
        "a first draft with a list too few",
        """model_id = [1]
access_list = [[]]
Wait, I forgot the subtasks. Again:
"""
        + lists(),
    ),
    Accepted(
        "a list corrected at once",
        'subtasks = ["Answer."]\nmodel_id = [0]\nNo:\nmodel_id = [1]\naccess_list = [[]]',
        ONE,
    ),
    Accepted(
        "a list that breaks off and is begun again",
        'model_id = [1]\nsubtasks = ["Answ\nsubtasks = ["Answer."]\naccess_list = [[]]',
        ONE,
    ),
]
