"""Measures of evaluations beyond those that `podium report` prints: each is a function of evaluations."""
