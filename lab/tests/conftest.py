"""What tests of several folders need: tiny checkpoints, and a data folder for each test."""

from process_settings import pytest_collection_finish  # isort: skip - before NumPy

from tiny_models import make_checkpoint

__all__ = ["make_checkpoint", "pytest_collection_finish"]
