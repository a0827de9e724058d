"""Runs inside a sandbox, with the standard library alone. Nothing here contains the right answers."""
