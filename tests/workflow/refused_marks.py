"""Texts that are refused for a mark: a quotation mark, a comma or a bracket.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import Refused, lists

REFUSED_MARKS = [
    # -- quotation marks
    Refused(
        "a quotation mark inside a text",
        lists(subtasks='["Find "it" now.", "Write it."]'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found 'it"': write \\" for a quotation mark inside a text.
    subtasks = ["Find "it" now.", "Write it."]
                       ^""",
    ),
    Refused(
        "another quotation mark at the end",
        lists(
            subtasks="""\
["Find it.', "Write it."]"""
        ),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found 'Write': write \\" for a quotation mark inside a text.
    subtasks = ["Find it.', "Write it."]
                             ^""",
    ),
    Refused(
        "a curly quotation mark that a straight one closes",
        lists(subtasks='[“Find it.", “Write it."]'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found 'Write': write \\" for a quotation mark inside a text.
    subtasks = [“Find it.", “Write it."]
                             ^""",
    ),
    Refused(
        "a triple quotation mark that is never closed",
        """\
model_id = [1]
access_list = [[]]
subtasks = [\"\"\"Answer."]""",
        "unclosed_text",
        """\
Expected a closing \"\"\" for a text of subtasks, found the end of the text.
    subtasks = [\"\"\"Answer."]
                ^""",
    ),
    Refused(
        "an apostrophe at the end of a word in single quotes",
        lists(model_id="[1]", subtasks="['Average the workers' ages.']", access_list="[[]]"),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found 'ages.'': write \\" for a quotation mark inside a text.
    subtasks = ['Average the workers' ages.']
                                      ^""",
    ),
    Refused(
        "subtasks without quotation marks",
        lists(subtasks="[Find it., Write it.]"),
        "unquoted_text",
        """\
Expected ',' or ']' after 'Find' in subtasks, found 'it.': put text in quotation marks.
    subtasks = [Find it., Write it.]
                ^""",
    ),
    Refused(
        "one word without quotation marks",
        lists(subtasks="[Find, Write]"),
        "bad_subtask",
        """\
Expected text in quotation marks as subtask of step 0, found 'Find'.
    subtasks = [Find, Write]
                ^""",
    ),
    Refused(
        "words of a plan without quotation marks",
        lists(model_id="[worker 2, worker 0]"),
        "unquoted_text",
        """\
Expected ',' or ']' after 'worker' in model_id, found '2': put text in quotation marks.
    model_id = [worker 2, worker 0]
                ^""",
    ),
    Refused(
        "an f-string",
        lists(model_id="[1]", subtasks='[f"Answer {question}."]', access_list="[[]]"),
        "unquoted_text",
        """\
Expected ',' or ']' after 'f' in subtasks, found '"': put text in quotation marks.
    subtasks = [f"Answer {question}."]
                ^""",
    ),
    # -- commas and brackets
    Refused(
        "no comma between subtasks",
        lists(subtasks='["Find it." "Write it."]'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found '"': put a comma between two texts.
    subtasks = ["Find it." "Write it."]
                           ^""",
    ),
    Refused(
        "no comma between lines",
        """\
model_id = [2, 0]
subtasks = [
    "Find it."
    "Write it."
]
access_list = [[], ["all"]]""",
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found '"': put a comma between two texts.
        "Write it."
        ^""",
    ),
    Refused(
        "a sum of strings",
        lists(subtasks='["Find " + "it.", "Write it."]'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of subtasks, found '+': write \\" for a quotation mark inside a text.
    subtasks = ["Find " + "it.", "Write it."]
                        ^""",
    ),
    Refused(
        "no comma between numbers",
        lists(model_id="[2 0]"),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of model_id, found '0'.
    model_id = [2 0]
                  ^""",
    ),
    Refused(
        "no comma between lists",
        lists(access_list='[[] ["all"]]'),
        "missing_comma",
        """\
Expected ',' or ']' after an entry of access_list, found '['.
    access_list = [[] ["all"]]
                      ^""",
    ),
    Refused(
        "two commas",
        lists(model_id="[2,, 0]"),
        "misplaced_comma",
        """\
Expected an entry of model_id, found ','.
    model_id = [2,, 0]
                  ^""",
    ),
    Refused(
        "a comma alone",
        lists(model_id="[,]", subtasks="[]", access_list="[]"),
        "misplaced_comma",
        """\
Expected an entry of model_id, found ','.
    model_id = [,]
                ^""",
    ),
    Refused(
        "five brackets deep",
        lists(access_list="[[[[[]]]]]"),
        "too_deep",
        """\
Expected brackets at most 4 deep in access_list, found another '['.
    access_list = [[[[[]]]]]
                      ^""",
    ),
    Refused(
        "two more brackets around a list",
        lists(model_id="[[[2, 0]]]"),
        "unequal_lists",
        """\
Expected three lists of one length, found 1 in model_id, 2 in subtasks and 2 in access_list.
    model_id = [[[2, 0]]]
               ^""",
    ),
    Refused(
        "a list for each number",
        lists(model_id="[[2], [0]]"),
        "bad_worker",
        """\
Expected a worker's number (0 to 2) for step 0, found a list.
    model_id = [[2], [0]]
                ^""",
    ),
    Refused(
        "a list for each subtask",
        lists(subtasks='[["Find it."], ["Write it."]]'),
        "bad_subtask",
        """\
Expected text in quotation marks as subtask of step 0, found a list.
    subtasks = [["Find it."], ["Write it."]]
                ^""",
    ),
]
