"""Texts that are refused for a mark: a quotation mark, a comma or a bracket.

Read with three workers and five steps at most. Each with its whole error text.
"""

from __future__ import annotations

from workflow_cases import lists, refused

REFUSED_MARKS = [
    # -- quotation marks
    refused(
        "a quotation mark inside a text",
        lists(subtasks='["Find "¦it" now.", "Write it."]'),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found 'it\"': write \\\" for a quotation mark inside a text.",
    ),
    refused(
        "another quotation mark at the end",
        lists(subtasks='["Find it.\', "¦Write it."]'),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found 'Write': write \\\" for a quotation mark inside a text.",
    ),
    refused(
        "a curly quotation mark that a straight one closes",
        lists(subtasks='[“Find it.", “¦Write it."]'),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found 'Write': write \\\" for a quotation mark inside a text.",
    ),
    refused(
        "a triple quotation mark that is never closed",
        """\
model_id = [1]
access_list = [[]]
subtasks = [¦\"\"\"Answer."]""",
        "unclosed_text",
        'Expected a closing """ for a text of subtasks, found the end of the text.',
    ),
    refused(
        "an apostrophe at the end of a word in single quotes",
        lists(model_id="[1]", subtasks="['Average the workers' ¦ages.']", access_list="[[]]"),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found 'ages.'': "
        'write \\" for a quotation mark inside a text.',
    ),
    refused(
        "subtasks without quotation marks",
        lists(subtasks="[¦Find it., Write it.]"),
        "unquoted_text",
        "Expected ',' or ']' after 'Find' in subtasks, found 'it.': put text in quotation marks.",
    ),
    refused(
        "one word without quotation marks",
        lists(subtasks="[¦Find, Write]"),
        "bad_subtask",
        "Expected text in quotation marks as subtask of step 0, found 'Find'.",
    ),
    # -- commas and brackets
    refused(
        "no comma between subtasks",
        lists(subtasks='["Find it." ¦"Write it."]'),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found '\"': put a comma between two texts.",
    ),
    refused(
        "a sum of strings",
        lists(subtasks='["Find " ¦+ "it.", "Write it."]'),
        "missing_comma",
        "Expected ',' or ']' after an entry of subtasks, found '+': write \\\" for a quotation mark inside a text.",
    ),
    refused(
        "no comma between numbers",
        lists(model_id="[2 ¦0]"),
        "missing_comma",
        "Expected ',' or ']' after an entry of model_id, found '0'.",
    ),
    refused(
        "two commas",
        lists(model_id="[2,¦, 0]"),
        "misplaced_comma",
        "Expected an entry of model_id, found ','.",
    ),
    refused(
        "five brackets deep",
        lists(access_list="[[[[¦[]]]]]"),
        "too_deep",
        "Expected brackets at most 4 deep in access_list, found another '['.",
    ),
    refused(
        "two more brackets around a list",
        lists(model_id="¦[[[2, 0]]]"),
        "unequal_lists",
        "Expected three lists of one length, found 1 in model_id, 2 in subtasks and 2 in access_list.",
    ),
    refused(
        "a list for each number",
        lists(model_id="[¦[2], [0]]"),
        "bad_worker",
        "Expected a worker's number (0 to 2) for step 0, found a list.",
    ),
]
