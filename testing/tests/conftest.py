"""What a process of tests needs before all else."""

from process_settings import pytest_collection_finish

__all__ = ["pytest_collection_finish"]
