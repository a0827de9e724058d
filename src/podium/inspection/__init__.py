"""Podium as a model of Inspect (`inspect-ai`): `inspect eval TASK --model podium/<pool or planner>`.

An application, in the same layer as evaluation and training. Inspect asks, grades and logs; Podium answers and keeps
its traces. Inspect is imported in `provider` and `registry` alone, which Inspect itself loads.
"""
