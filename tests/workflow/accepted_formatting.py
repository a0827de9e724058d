"""Completions with all the formatting that models put around lists, and the workflow that each must give.

Read with three workers and five steps at most.
"""

from __future__ import annotations

from workflow_cases import Accepted, lists, written

ACCEPTED_FORMATTING = [
    # -- canonical, and around it
    Accepted("canonical", lists()),
    Accepted("a thought line before it, as the tiny policy writes", "dates 2, sums 0\n" + lists()),
    Accepted(
        "prose before and after",
        """Sure! The pool has a strong finder, so the subtasks are split like this:

model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]

This way worker 0 sees everything. Let me know if the access list should differ!""",
    ),
    Accepted(
        "no spaces and semicolons, on one line",
        'model_id=[2,0];subtasks=["Find it.","Write it."];access_list=[[],["all"]]',
    ),
    Accepted(
        "spaces everywhere",
        """
  model_id   =  [ 2 ,  0 ]

  \t subtasks =   [ "Find it." ,"Write it."  ]

 access_list\t=\t[ [ ] , [ "all" ] ]
 """,
    ),
    Accepted(
        "Windows line breaks",
        'model_id = [2, 0]\r\nsubtasks = ["Find it.",\r\n  "Write it."]\r\naccess_list = [[], ["all"]]\r\n',
    ),
    Accepted(
        "another order",
        'access_list = [[], ["all"]]\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]',
    ),
    Accepted(
        "trailing commas",
        'model_id = [2, 0,]\nsubtasks = ["Find it.", "Write it.",]\naccess_list = [[], ["all",],]',
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
    ),
    Accepted(
        "comments with slashes",
        lists(model_id="[2, // the finder's\n 0]", subtasks='["Find it.", "Write it."] // two'),
    ),
    # -- separators and labels
    Accepted("colons for equals signs", written("{}: {}")),
    Accepted(
        "walrus and double equals",
        'model_id := [2, 0]\nsubtasks == ["Find it.", "Write it."]\naccess_list :  [[], ["all"]]',
    ),
    Accepted(
        "full-width punctuation",
        'model_id：[2，0]\nsubtasks＝["Find it."，"Write it."]\naccess_list：[[]，["all"]]',
    ),
    Accepted(
        "type annotations",
        """model_id: list[int] = [2, 0]
subtasks: List[str] = ["Find it.", "Write it."]
access_list: list[list[int | str]] = [[], ["all"]]""",
    ),
    Accepted("bold labels, colon outside", written("**{}**: {}")),
    Accepted("bold labels, colon inside", written("**{}:** {}")),
    Accepted("labels as words in title case", written("**{}:** {}", "Model ID", "Subtasks", "Access list")),
    Accepted("labels in capitals", written("{} = {}", "MODEL_ID", "SUBTASKS", "ACCESS_LIST")),
    Accepted("labels with hyphens", written("{}: {}", "model-id", "subtasks", "access-list")),
    Accepted(
        "underscores escaped for Markdown", written("{} = {}", r"model\_id", "subtasks", r"access\_list")
    ),
    Accepted("labels in backticks", written("`{}` = {}")),
    Accepted("values in backticks", written("{}: `{}`")),
    Accepted("values in bold", written("{} = **{}**")),
    Accepted("stars as bullets, bold and backticks", written("* **`{}`**: {}")),
    Accepted(
        "numbered",
        '1. model_id = [2, 0]\n2. subtasks = ["Find it.", "Write it."]\n3. access_list = [[], ["all"]]',
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
    ),
    Accepted(
        "remarks in parentheses",
        'model_id (finder, writer): [2, 0]\nsubtasks (in order) = ["Find it.", "Write it."]\n'
        'access_list (who sees what): [[], ["all"]]',
    ),
    Accepted(
        "headings with the value below",
        """### model_id
[2, 0]

### subtasks
["Find it.", "Write it."]

### access_list
[[], ["all"]]""",
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
    ),
    Accepted("attributes of an object", written("plan.{} = {}")),
    # -- fences
    Accepted(
        "a Python fence between prose",
        """Here is my plan:

```python
model_id = [2, 0]
subtasks = ["Find it.", "Write it."]
access_list = [[], ["all"]]
```

Worker 2 goes first.""",
    ),
    Accepted(
        "a fence that nobody closes",
        '```python\nmodel_id = [2, 0]\nsubtasks = ["Find it.", "Write it."]\naccess_list = [[], ["all"]]',
    ),
    # -- JSON
    Accepted(
        "a JSON object",
        '{"model_id": [2, 0], "subtasks": ["Find it.", "Write it."], "access_list": [[], ["all"]]}',
    ),
    Accepted(
        "a Python dict in single quotes",
        "{'model_id': [2, 0], 'subtasks': ['Find it.', 'Write it.'], 'access_list': [[], ['all']]}",
    ),
]
