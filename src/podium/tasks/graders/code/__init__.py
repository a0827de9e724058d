"""The grader of code: a program passes all tests, or it is wrong. Programs run in a sandbox (`podium.sandbox`).

`gold` says what tests are, `judging` runs them, `outputs` compares; `needs` reads what tests ask of a program.
"""

from podium.tasks.graders.code.grader import Code

__all__ = ["Code"]
