"""Reads what models write: answers, numbers, code, thoughts; and fences what a prompt quotes of it."""
