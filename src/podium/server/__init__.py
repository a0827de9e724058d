"""One endpoint in front of the team: OpenAI's routes, Podium's own, and the viewer.

An application beside evals and train: imports the orchestrator and what is below it, and is imported by cli alone.
The web framework is imported here and nowhere else.
"""
