"""Completions with all the formatting that models put around lists, and the workflow that each must give.

Read with three workers and five steps at most.
"""

from __future__ import annotations

from workflow_cases import TWO, Accepted, lists

ACCEPTED_FORMATTING = [
    # -- canonical, and around it
    Accepted(
        "canonical",
        lists(),
        TWO,
    ),
    Accepted(
        "a thought line before it, as the tiny policy writes",
        "dates 2, sums 0\n" + lists(),
        TWO,
    ),
    Accepted(
        "prose before and after",
        """Sure! The pool has a strong finder, so the subtasks are split like this:

model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]

This way worker 0 sees everything. Let me know if the access list should differ!""",
        TWO,
    ),
    Accepted(
        "no spaces and semicolons, on one line",
        'model_id=[2,0];subtasks=["Find it.","Write it."];access_list=[[],["all"]]',
        TWO,
    ),
    Accepted(
        "spaces everywhere",
        """
  model_id   =  [ 2 ,  0 ]

  \t subtasks =   [ "Find it." ,"Write it."  ]

 access_list\t=\t[ [ ] , [ "all" ] ]
 """,
        TWO,
    ),
    Accepted(
        "Windows line breaks",
        'model_id = [2, 0]\r\nsubtasks = ["Find it.",\r\n  "Write it."]\r\naccess_list = [[], ["all"]]\r\n',
        TWO,
    ),
    Accepted(
        "another order",
        'access_list = [[], ["all"]]\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]',
        TWO,
    ),
    Accepted(
        "reverse order",
        'subtasks = ["Find it.", "Write it."]\naccess_list = [[], "all"]\nmodel_id = [2, 0]',
        TWO,
    ),
    Accepted(
        "trailing commas",
        'model_id = [2, 0,]\nsubtasks = ["Find it.", "Write it.",]\naccess_list = [[], ["all",],]',
        TWO,
    ),
    Accepted(
        "line breaks inside lists",
        """model_id = [
    2,
    0
]
subtasks = [
    "Find it.",
    "Write it."
]
access_list = [
    [],
    [
        "all"
    ]
]""",
        TWO,
    ),
    Accepted(
        "Python comments",
        """model_id = [2, 0]  # the finder, then the writer
subtasks = [
    "Find it.",  # step 0: "quotes" and ] in a comment are nothing
    # and now the answer
    "Write it.",
]
access_list = [[], ["all"]]  # step 1 sees step 0""",
        TWO,
    ),
    Accepted(
        "comments with slashes",
        lists(model_id="[2, // the finder's\n 0]", subtasks='["Find it.", "Write it."] // two'),
        TWO,
    ),
    # -- separators and labels
    Accepted(
        "colons for equals signs",
        'model_id: [2, 0]\nsubtasks: ["Find it.", "Write it."]\naccess_list: [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "walrus and double equals",
        'model_id := [2, 0]\nsubtasks == ["Find it.", "Write it."]\naccess_list :  [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "full-width punctuation",
        'model_id：[2，0]\nsubtasks＝["Find it."，"Write it."]\naccess_list：[[]，["all"]]',
        TWO,
    ),
    Accepted(
        "type annotations",
        """model_id: list[int] = [2, 0]
subtasks: List[str] = ["Find it.", "Write it."]
access_list: list[list[int | str]] = [[], ["all"]]""",
        TWO,
    ),
    Accepted(
        "bold labels, colon outside",
        '**model_id**: [2, 0]\n**subtasks**: ["Find it.", "Write it."]\n**access_list**: [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "bold labels, colon inside",
        '**model_id:** [2, 0]\n**subtasks:** ["Find it.", "Write it."]\n**access_list:** [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "labels as words in title case",
        '**Model ID:** [2, 0]\n**Subtasks:** ["Find it.", "Write it."]\n**Access list:** [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "labels in capitals",
        'MODEL_ID = [2, 0]\nSUBTASKS = ["Find it.", "Write it."]\nACCESS_LIST = [[], ["ALL"]]',
        TWO,
    ),
    Accepted(
        "labels with hyphens",
        'model-id: [2, 0]\nsubtasks: ["Find it.", "Write it."]\naccess-list: [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "underscores escaped for Markdown",
        'model\\_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\naccess\\_list = [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "labels in backticks",
        '`model_id` = [2, 0]\n`subtasks` = ["Find it.", "Write it."]\n`access_list` = [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "whole lines in backticks",
        '`model_id = [2, 0]`\n`subtasks = ["Find it.", "Write it."]`\n`access_list = [[], ["all"]]`',
        TWO,
    ),
    Accepted(
        "values in backticks",
        'model_id: `[2, 0]`\nsubtasks: `["Find it.", "Write it."]`\naccess_list: `[[], ["all"]]`',
        TWO,
    ),
    Accepted(
        "values in bold",
        'model_id = **[2, 0]**\nsubtasks = **["Find it.", "Write it."]**\naccess_list = **[[], ["all"]]**',
        TWO,
    ),
    Accepted(
        "dashes as bullets",
        '- model_id = [2, 0]\n- subtasks = ["Find it.", "Write it."]\n- access_list = [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "stars as bullets, bold and backticks",
        """
* **`model_id`**: [2, 0]
* **`subtasks`**: ["Find it.", "Write it."]
* **`access_list`**: [[], ["all"]]
""",
        TWO,
    ),
    Accepted(
        "numbered",
        '1. model_id = [2, 0]\n2. subtasks = ["Find it.", "Write it."]\n3. access_list = [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "bullets inside the lists",
        """model_id = [
  - 2,
  - 0,
]
subtasks = [
  • "Find it.",
  • "Write it.",
]
access_list = [
  * [],
  * ["all"],
]""",
        TWO,
    ),
    Accepted(
        "quoted as a reply",
        """
> model_id = [2, 0]
> subtasks = [
>   "Find it.",
>   "Write it.",
> ]
> access_list = [[], ["all"]]
""",
        TWO,
    ),
    Accepted(
        "remarks in parentheses",
        'model_id (finder, writer): [2, 0]\nsubtasks (in order) = ["Find it.", "Write it."]\n'
        'access_list (who sees what): [[], ["all"]]',
        TWO,
    ),
    Accepted(
        "headings with the value below",
        """### model_id
[2, 0]

### subtasks
["Find it.", "Write it."]

### access_list
[[], ["all"]]""",
        TWO,
    ),
    Accepted(
        "bold headings with a fence for each value",
        """**model_id:**
```python
[2, 0]
```
**subtasks:**
```python
["Find it.", "Write it."]
```
**access_list:**
```json
[[], ["all"]]
```""",
        TWO,
    ),
    Accepted(
        "attributes of an object",
        'plan.model_id = [2, 0]\nplan.subtasks = ["Find it.", "Write it."]\nplan.access_list = [[], ["all"]]',
        TWO,
    ),
    # -- fences
    Accepted(
        "a fence",
        '```\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\naccess_list = [[], ["all"]]\n```',
        TWO,
    ),
    Accepted(
        "a Python fence between prose",
        """Here is my plan:

```python
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]
```

Worker 2 goes first.""",
        TWO,
    ),
    Accepted(
        "a fence that nobody closes",
        '```python\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\naccess_list = [[], ["all"]]',
        TWO,
    ),
    # -- JSON
    Accepted(
        "a JSON object",
        '{"model_id": [2, 0], "subtasks": ["Find it.", "Write it."], "access_list": [[], ["all"]]}',
        TWO,
    ),
    Accepted(
        "a JSON object over lines in a fence",
        """```json
{
  "model_id": [2, 0],
  "subtasks": [
    "Find it.",
    "Write it."
  ],
  "access_list": [[], ["all"]]
}
```""",
        TWO,
    ),
    Accepted(
        "a Python dict in single quotes",
        "{'model_id': [2, 0], 'subtasks': ['Find it.', 'Write it.'], 'access_list': [[], ['all']]}",
        TWO,
    ),
]
