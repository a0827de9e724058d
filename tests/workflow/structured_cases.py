"""Structured plans in unusual writing, and the workflow or the error that each must give.

Read with the three workers `NAMES` and five steps at most.
"""

from __future__ import annotations

from podium.workflow import Acceptance, Access
from workflow_cases import ALL, PREVIOUS, TWO, Accepted, lists, plan, refused

NAMES = ("coder", "Vote", "writer")
OBJECT = (
    '{"thought": "Search, then write.", "steps": [{"worker": "writer", "subtask": "Find it.", "sees": []}, '
    '{"worker": "coder", "subtask": "Write it.", "sees": ["all"]}]}'
)
"""The text of `TWO`."""


def one(*, worker: str = '"writer"', subtask: str = '"Find it."', sees: str = "[]") -> str:
    return f'{{"steps": [{{"worker": {worker}, "subtask": {subtask}, "sees": {sees}}}]}}'


ONE = plan((2, "Find it."))

ACCEPTED_OBJECTS = [
    Accepted("as the schema has it", OBJECT),
    Accepted("a fence of JSON", f"```json\n{OBJECT}\n```"),
    Accepted("text around it", f"Here is my plan:\n{OBJECT}\nI hope that it helps {{you}}."),
    Accepted("a thought before it", f"<think>{one()}</think>{OBJECT}"),
    Accepted("a lone closing mark", f"{one()}</think>\n{OBJECT}"),
    Accepted("a thought that is never closed", f"<think>\n{OBJECT}"),
    Accepted("single quotes", OBJECT.replace('"', "'")),
    Accepted("curly quotes", "“".join(OBJECT.split('"'))),
    Accepted(
        "an apostrophe in single quotes", one(subtask="'Find Ann's key.'"), plan((2, "Find Ann's key."))
    ),
    Accepted("bare keys", OBJECT.replace('"thought"', "thought").replace('"sees"', "sees")),
    Accepted("other case", OBJECT.replace('"steps"', '"Steps"').replace('"sees"', '"SEES"')),
    Accepted("trailing commas", OBJECT.replace("]}", "],}").replace("}]", "},]")),
    Accepted(
        "full-width marks",
        OBJECT.replace(", ", "，").replace(": ", "："),
        plan((2, "Find it."), (0, "Write it.", ALL)),
    ),
    Accepted("comments", OBJECT.replace("[{", "[ // the first\n{").replace(", {", ", # then\n{")),
    Accepted("a comment behind the brace", OBJECT.replace("{", "{ // a plan\n", 1)),
    Accepted("line breaks in a text", one(subtask='"Find\nit."'), plan((2, "Find\nit."))),
    Accepted(
        "other order",
        '{"steps": [{"sees": [], "subtask": "Find it.", "worker": "writer"}], "thought": ""}',
        ONE,
    ),
    Accepted(
        "further keys",
        '{"why": {"a": [1]}, "steps": [{"worker": 2, "subtask": "Find it.", "sees": [], "n": 1}]}',
        ONE,
    ),
    Accepted("within another object", f'{{"plan": {OBJECT}}}'),
    Accepted("within a list", f"[{OBJECT}]"),
    Accepted("a number for a name", one(worker="2"), ONE),
    Accepted("a number in quotes", one(worker='"2"'), ONE),
    Accepted("a name in other case", one(worker='"WRITER"'), ONE),
    Accepted("a name with spaces around it", one(worker='" vote "'), plan((1, "Find it."))),
    Accepted("a bare name", one(worker="coder"), plan((0, "Find it."))),
    Accepted("all without brackets", one(sees='"all"'), plan((2, "Find it.", ALL))),
    Accepted("all without quotes", one(sees="[ALL]"), plan((2, "Find it.", ALL))),
    Accepted("null for none", one(sees="null"), ONE),
    Accepted("the previous answer", one(sees='["previous"]'), plan((2, "Find it.", PREVIOUS)), True),
    Accepted(
        "a key that repeats",
        '{"steps": [], "steps": [{"worker": 2, "subtask": "Find it.", "sees": []}]}',
        ONE,
    ),
    Accepted("accept", '{"thought": "Right.", "accept": true}', Acceptance(), True),
    Accepted("accept alone, as Python has it", "{'accept': True}", Acceptance(), True),
    Accepted("accept with no steps", '{"thought": "", "accept": true, "steps": []}', Acceptance(), True),
    Accepted("no accept", OBJECT.replace('"steps"', '"accept": false, "steps"'), TWO, True),
    # -- of several plans, the one that ends last
    Accepted("two objects", f"{one()}\nBetter:\n{OBJECT}"),
    Accepted("a broken draft", f'{{"thought": "x", "steps": [{{"worker":\n{OBJECT}'),
    Accepted("a later draft that breaks off", f'{OBJECT}\n{{"thought": "x", "steps": [{{"worker": '),
    Accepted("the lists, then an object", f"{lists()}\n{one()}", ONE),
    Accepted("an object, then the lists", f"{one()}\n{lists()}"),
    Accepted(
        "an object within a subtask",
        lists(subtasks="['{\"accept\": true}', 'Write it.']"),
        plan((2, '{"accept": true}'), (0, "Write it.", ALL)),
    ),
    Accepted("the lists, then an object that is no plan", f'{lists()}\n{{"steps": ["Find it."], "n": 2}}'),
    Accepted(
        "the lists within an object", '{"model_id": [2], "subtasks": ["Find it."], "access_list": [[]]}', ONE
    ),
    Accepted(
        "the lists within an object with steps",
        '{"steps": 1, "model_id": [2], "subtasks": ["Find it."], "access_list": [[]]}',
        ONE,
    ),
    Accepted("many objects before it", '{"a": [1]} ' * 200 + OBJECT),
    Accepted("many braces before it", r"\frac{a}{b} {x " * 200 + OBJECT),
    Accepted(
        "steps by number",
        OBJECT.replace('["all"]', "[0]"),
        plan((2, "Find it."), (0, "Write it.", Access((0,)))),
    ),
]


REFUSED_OBJECTS = [
    refused(
        "no object",
        "I would ask the writer.",
        "missing_object",
        'Expected an object with "thought" and "steps", found none.',
    ),
    refused(
        "an object without steps",
        "{'plan': 1}",
        "missing_object",
        'Expected an object with "thought" and "steps", found none.',
    ),
    refused(
        "a thought alone", '¦{"thought": "x"}', "no_steps", 'Expected a list "steps" of objects, found none.'
    ),
    refused(
        "steps that are texts", '{"steps": [¦"x"]}', "bad_step", "Expected an object for step 0, found 'x'."
    ),
    refused(
        "steps that are no list",
        '{"steps": ¦"x"}',
        "no_steps",
        "Expected a list \"steps\" of objects, found 'x'.",
    ),
    refused(
        "an unknown name",
        one(worker='¦"codr"'),
        "unknown_worker",
        "Expected a worker of the pool (coder, Vote, writer) for step 0, found 'codr'.",
    ),
    refused(
        "a number outside the pool",
        one(worker="¦3"),
        "unknown_worker",
        "Expected a worker of the pool (0 to 2) for step 0, found 3.",
    ),
    refused(
        "a worker that is a list",
        one(worker="¦[2]"),
        "bad_worker",
        "Expected a worker's number (0 to 2) for step 0, found a list.",
    ),
    refused(
        "no sees",
        '{"steps": [¦{"worker": 2, "subtask": "x"}]}',
        "missing_key",
        'Expected "sees" in step 0, found none.',
    ),
    refused(
        "a forward reference",
        one(sees="[¦1]"),
        "unknown_step",
        "Expected step 0 to read nothing, as the first of all, found 1, not a step: steps count from 0.",
    ),
    refused(
        "a reference to itself",
        one(sees="[¦0]"),
        "self_reference",
        "Expected step 0 to read nothing, as the first of all, found 0, the step itself: steps count from 0.",
    ),
    refused(
        "a number without brackets",
        one(sees="¦0"),
        "bad_access",
        "Expected [], [\"all\"] or numbers of earlier steps for step 0, found '0': write [0].",
    ),
    refused(
        "previous in the first round",
        one(subtask='"x"', sees='¦["previous"]'),
        "no_previous",
        'Expected no "previous" in the first round, found it at step 0: no round came before.',
    ),
    refused(
        "an empty subtask",
        one(subtask='¦" "'),
        "empty_subtask",
        "Expected a subtask for step 0, found an empty text.",
    ),
    refused(
        "no quotation marks",
        one(subtask="¦x"),
        "bad_subtask",
        "Expected text in quotation marks as subtask of step 0, found 'x'.",
    ),
    refused(
        "no steps", '{"thought": "", "steps": ¦[]}', "empty_plan", "Expected at least one step, found none."
    ),
    refused(
        "neither steps nor an acceptance",
        '{"accept": false, "steps": ¦[]}',
        "empty_plan",
        'Expected at least one step, found none: write "accept": true to accept the answer.',
        later_round=True,
    ),
    refused(
        "accept in the first round",
        '{"accept": ¦true}',
        "empty_plan",
        'Expected steps, found "accept": true in the first round: there is no answer to accept.',
    ),
    refused(
        "steps and an acceptance",
        '{"accept": ¦true, "steps": [1]}',
        "accept_and_steps",
        'Expected either steps or "accept": true, found both.',
        later_round=True,
    ),
    refused(
        "an acceptance that is a text",
        '{"accept": ¦"?", "steps": []}',
        "bad_accept",
        "Expected true or false for \"accept\", found '?'.",
        later_round=True,
    ),
    refused(
        "a brace too few",
        '{"steps": []¦',
        "unclosed_object",
        "Expected '}' at the end of the plan, found the end of the text.",
    ),
    refused(
        "a bracket too few",
        '{"steps": [¦',
        "unclosed_list",
        "Expected ']' at the end of the plan, found the end of the text.",
    ),
    refused(
        "brackets too deep",
        one(worker="2", subtask='"x"', sees="[¦[0]]"),
        "too_deep",
        "Expected brackets at most 4 deep in the plan, found another '['.",
    ),
    refused(
        "no comma",
        '{"thought": "a" ¦"steps": []}',
        "missing_comma",
        "Expected ',' or '}' after an entry of the plan, found '\"': put a comma between two texts.",
    ),
    refused(
        "no colon", '{"thought" ¦"a"}', "misplaced_mark", "Expected ':' after a key in the plan, found '\"'."
    ),
    refused(
        "no value",
        '{"thought": ¦}',
        "misplaced_mark",
        "Expected a value after the key in the plan, found '}'.",
    ),
    refused(
        "a bracket for a brace", '{"thought": "a"¦]', "misplaced_mark", "Expected '}' in the plan, found ']'."
    ),
    refused(
        "a text that is not closed",
        '{"thought": ¦"a',
        "unclosed_text",
        'Expected a closing " for a text of the plan, found the end of the text.',
    ),
    refused(
        "a key without quotation marks",
        '{"thought": "a", ¦1: 2}',
        "misplaced_mark",
        "Expected a key in quotation marks in the plan, found '1:'.",
    ),
    refused(
        "two commas",
        '{"thought": "a",¦, "steps": []}',
        "misplaced_comma",
        "Expected an entry of the plan, found ','.",
    ),
    refused(
        "too many steps",
        one(worker='¦"writer"'),
        "too_many_steps",
        "Expected at most 0 steps, found 1.",
        max_steps=0,
    ),
]
