"""What tests of several folders need: tiny checkpoints, and a data folder for each test."""

import os

# Read when NumPy is first imported; its threads spin while they wait, beside those of other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis

from tiny_models import make_checkpoint

hypothesis.settings.register_profile("untimed", deadline=None)  # Nothing timed decides a test.
hypothesis.settings.load_profile("untimed")

__all__ = ["make_checkpoint"]
