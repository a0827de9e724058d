"""Measures workers: holds their answers as arrays, and makes ratings of them.

This package makes ratings files; `podium.workers.ratings` reads the one that a pool names.
"""
