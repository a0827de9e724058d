"""Searches for the files of planners: `podium search` runs them."""
