"""Completions whose lists are written in unusual ways, and the workflow that each must give.

Read with three workers and five steps at most.
"""

from __future__ import annotations

from podium.workflow import Acceptance, Access
from workflow_cases import ALL, ONE, PREVIOUS, Accepted, lists, plan

ACCEPTED_VALUES = [
    # -- brackets
    Accepted(
        "one more bracket around every list",
        lists(model_id="[[2, 0]]", subtasks='[["Find it.", "Write it."]]', access_list='[[[], ["all"]]]'),
    ),
    Accepted("one more bracket around bare words", lists(access_list='[["none", "all"]]')),
    Accepted(
        "one more bracket around a single step",
        lists(model_id="[[1]]", subtasks='[["Answer."]]', access_list="[[[]]]"),
        ONE,
    ),
    # -- quotation marks
    Accepted("single quotes", lists(subtasks="['Find it.', 'Write it.']", access_list="[[], ['all']]")),
    Accepted("curly quotes", lists(subtasks="[“Find it.”, “Write it.”]", access_list="[[], [“all”]]")),
    Accepted(
        "single curly quotes with an apostrophe",
        lists(model_id="[1]", subtasks="[‘Find the city’s age.’]", access_list="[[]]"),
        plan((1, "Find the city’s age.")),
    ),
    Accepted("German quotes", lists(subtasks="[„Find it.“, „Write it.“]", access_list="[[], [„all“]]")),
    Accepted("triple quotes over lines", lists(subtasks='[\n"""\nFind it.\n""",' + "'''Write it.'''\n]")),
    Accepted("backticks as quotes", lists(subtasks="[`Find it.`, `Write it.`]", access_list="[[], [`all`]]")),
    Accepted(
        "quotes of all kinds mixed",
        "model_id = [\"2\", '0']\nsubtasks = ['Find it.', “Write it.”]\naccess_list = [[], [all]]",
    ),
    Accepted(
        "an apostrophe in single quotes",
        lists(model_id="[1]", subtasks="['Find the city's age, don't guess.']", access_list="[[]]"),
        plan((1, "Find the city's age, don't guess.")),
    ),
    Accepted(
        "quotes inside other quotes",
        "model_id = [1, 1]\nsubtasks = ['Say \"hello\".', \"Say 'bye'.\"]\naccess_list = [[], []]",
        plan((1, 'Say "hello".'), (1, "Say 'bye'.")),
    ),
    Accepted(
        "escaped quotes",
        'model_id = [1]\nsubtasks = ["Say \\"hello\\" and \\\'bye\\\'."]\naccess_list = [[]]',
        plan((1, "Say \"hello\" and 'bye'.")),
    ),
    Accepted(
        "escapes of Python and JSON",
        r"model_id = [1]"
        "\n"
        r'subtasks = ["a\nb\tc \\ \/ \u00e9 \xe9 \ud83d\ude00 \U0001F600"]'
        "\n"
        "access_list = [[]]",
        plan((1, "a\nb\tc \\ / é é 😀 😀")),
    ),
    Accepted(
        "backslashes that escape nothing",
        r"model_id = [1]" "\n" r'subtasks = ["Match \d+ and \(x\) in C:\Docs."]' "\n" "access_list = [[]]",
        plan((1, r"Match \d+ and \(x\) in C:\Docs.")),
    ),
    Accepted(
        "a raw line break in a string",
        'model_id = [1]\nsubtasks = ["Do this:\n- first\n- second"]\naccess_list = [[]]',
        plan((1, "Do this:\n- first\n- second")),
    ),
    Accepted(
        "spaces around a subtask", 'model_id = [1]\nsubtasks = ["  Answer.\\n "]\naccess_list = [[]]', ONE
    ),
    Accepted(
        "brackets, commas, comments and labels in a string",
        lists(
            model_id="[1]", subtasks='["Sort [3, 1]; # then set model_id = [7] // done"]', access_list="[[]]"
        ),
        plan((1, "Sort [3, 1]; # then set model_id = [7] // done")),
    ),
    Accepted(
        "tags of thoughts in a string",
        lists(model_id="[1]", subtasks='["Explain <think> and </think>."]', access_list="[[]]"),
        plan((1, "Explain <think> and </think>.")),
    ),
    Accepted(
        "other scripts",
        lists(model_id="[1]", subtasks='["求出两个日期之间的天数。"]', access_list="[[]]"),
        plan((1, "求出两个日期之间的天数。")),
    ),
    Accepted(
        "invisible characters",
        "\ufeff" + lists(model_id="[\u200b2,\u00a00]", subtasks='\u00a0["Find it.", \u2003"Write it."]'),
    ),
    # -- access lists
    Accepted(
        "bare and quoted words",
        lists(model_id="[0, 1, 2]", subtasks='["A", "B", "C"]', access_list='[[], "all", all]'),
        plan((0, "A"), (1, "B", ALL), (2, "C", ALL)),
    ),
    Accepted(
        "none in many ways",
        'model_id = [0, 1, 2, 0, 1]\nsubtasks = ["A", "B", "C", "D", "E"]\n'
        'access_list = [None, "none", null, ["None"], []]',
        plan((0, "A"), (1, "B"), (2, "C"), (0, "D"), (1, "E")),
    ),
    Accepted(
        "numbers of steps, quoted, repeated and in any order",
        lists(model_id="[0, 1, 2]", subtasks='["A", "B", "C"]', access_list='[[], ["0"], [1, 0, 1]]'),
        plan((0, "A"), (1, "B", Access(steps=(0,))), (2, "C", Access(steps=(0, 1)))),
    ),
    Accepted(
        "all at the first step",
        lists(model_id="[1]", subtasks='["Answer."]', access_list='["all"]'),
        plan((1, "Answer.", ALL)),
    ),
    Accepted("numbers beside all", lists(access_list='[[], [0, "all"]]')),
    Accepted(
        "five steps, the same worker often",
        'model_id = [1, 1, 1, 1, 1]\nsubtasks = ["A", "B", "C", "D", "E"]\n'
        "access_list = [[], [], [0, 1], [2], [0, 3]]",
        plan(
            (1, "A"),
            (1, "B"),
            (1, "C", Access(steps=(0, 1))),
            (1, "D", Access(steps=(2,))),
            (1, "E", Access(steps=(0, 3))),
        ),
    ),
    # -- later rounds
    Accepted("acceptance", "model_id = []\nsubtasks = []\naccess_list = []", Acceptance(), later_round=True),
    Accepted(
        "acceptance in one more bracket",
        "The answer is right.\n**model_id**: [[]]\n**subtasks**: [[]]\n**access_list**: [[]]",
        Acceptance(),
        later_round=True,
    ),
    Accepted(
        "the response of the round before",
        lists(access_list='["previous", [0, "previous"]]'),
        plan((2, "Find it.", PREVIOUS), (0, "Write it.", Access(steps=(0,), previous=True))),
        later_round=True,
    ),
    Accepted(
        "a bare word for the response of the round before, and all with it",
        lists(access_list='[[Previous], ["all", "previous"]]'),
        plan((2, "Find it.", PREVIOUS), (0, "Write it.", ALL)),
        later_round=True,
    ),
]
