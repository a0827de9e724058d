"""Podium on a laptop: a made-up world, eleven small language models that know parts of it, and a Conductor over them.

`world` has the facts and the task set, `exercises` who knows what and plans over it. `warmstart`
trains the small policy that reinforcement starts from, `small_workers` the models that answer, and `inference` runs
both in NumPy. All of it reaches Podium by the entry points of its `pyproject.toml`.
"""
