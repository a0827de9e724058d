"""Finds what could be a worker here: the models of servers on this machine, and the keys of known providers.

It only asks for lists of models, so it costs nothing. `podium init` proposes a pool from them.
"""
