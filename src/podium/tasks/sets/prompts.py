"""Prompts that several task sets put around their questions, and ids for questions whose dataset gives none.

`strip_prompt` removes the prompts again, so that questions are compared without them.
"""

from __future__ import annotations

import hashlib
import re

from podium.tasks.overlap import question_key

FINAL_NUMBER = "{question}\n\nEnd with a line of the form\nAnswer: NUMBER"
FINAL_ANSWER = (
    "{question}\n\nEnd with a line of the form\nAnswer: ANSWER\nwhich gives the answer alone, and no more."
)
BOXED = "{question}\n\nPut your final answer within \\boxed{{}}."
CHOICE = "{question}\n\n{options}\n\nEnd with a line of the form\nAnswer: LETTER"
PROGRAM = (
    "{question}\n\nWrite a Python program that reads all of its input from standard input and writes its answer to "
    "standard output. Give it whole, in one fenced Python block."
)
CODE = "{question}\n\nGive all of the code, with its imports, in one fenced Python block."
COMPLETION = CODE.format(question="{question}\n\n```python\n{code}\n```")
_LETTER = re.compile(r"^\(?[A-Z][.)] ", re.MULTILINE)


def strip_prompt(text: str) -> str:
    """A question without the prompt after it, and without the letters of its options."""
    for prompt in (FINAL_NUMBER, FINAL_ANSWER, BOXED, CHOICE, PROGRAM, CODE):
        text = text.removesuffix(prompt.format(question="", options="").lstrip()).rstrip()
    return _LETTER.sub("", text)


def content_id(text: str) -> str:
    """An id for a question that has none: a hash of its text, so it does not depend on the order of the file."""
    return hashlib.sha256(question_key(text).encode()).hexdigest()[:16]
