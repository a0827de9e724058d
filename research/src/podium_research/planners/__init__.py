"""Planners of other papers. Each file has one, and pyproject.toml an entry point for it."""
