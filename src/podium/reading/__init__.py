"""Reads what models write: answers, numbers, code, thoughts. Graders, votes and tools share these functions of text."""
