"""Suites: planners × task sets × pools × seeds from one file, with controls, kept answers and a report."""
