"""Podium on a laptop: a made-up world, eleven small language models that know parts of it, and a Conductor over them.

`world` has the facts and the task set, `small_workers` the models and what a Conductor over them is taught, `warmstart`
trains the small policy that reinforcement starts from, and `inference` runs such models in NumPy. All of it reaches
Podium by the entry points of its `pyproject.toml`.
"""
