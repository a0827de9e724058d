"""Podium: an open Conductor, a small language model that leads a team of others.

This module loads nothing heavy: everything is imported from where it lives.
"""

__version__ = "0.1.0"
