"""What a process of tests needs before all else; the files `conftest.py` of the three distributions import it first.

Libraries use one thread, since threads that spin while they wait slow the tests beside them. Properties have no
deadline: nothing timed decides a test. What collecting the tests leaves in memory is never searched for garbage.
"""

from __future__ import annotations

import gc
import os

import hypothesis

gc.disable()
# Read when NumPy, scikit-learn or torch is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """A million objects of modules and tests stay until the end: a full search of them takes a second each time."""
    gc.freeze()
    gc.enable()
