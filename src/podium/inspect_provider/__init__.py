"""Podium as a model of Inspect (`inspect-ai`): `inspect eval TASK --model podium/<pool or planner>`.

It stands above the library, and only the command line above it. Inspect asks the questions, grades the answers and logs
them; Podium answers and stores traces. Only `provider` and `registry` import Inspect, and Inspect itself loads these.
"""
