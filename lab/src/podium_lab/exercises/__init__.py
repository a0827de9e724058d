"""What examples and lessons about the made-up world are made of: who knows what, questions, and plans over them.

`abilities` says what each worker of the orchestra knows, `teams` shows a team, `cases` draws questions and requests,
`plans` draws plans, and `steps` and `working` have the sentences of their steps.
"""
