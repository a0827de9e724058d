"""Podium as a model of Inspect (`inspect-ai`): `inspect eval TASK --model podium/<pool or planner>`.

An application, in the same layer as evaluation and training. Inspect asks the questions, grades the answers and logs
them; Podium answers and stores traces. Only `provider` and `registry` import Inspect, and Inspect itself loads these.
"""
