"""Podium: an open Conductor, a small language model that leads a team of others.

Importing it loads no other module: import each name from the module that defines it.
"""

__version__ = "0.1.0"
