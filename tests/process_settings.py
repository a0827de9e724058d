"""What a process of tests needs before all else; the files `conftest.py` of the distributions import it first.

Libraries use one thread, since threads that spin while they wait slow the tests beside them. Properties have no
deadline, since nothing timed decides a test, and twenty times as many examples at night. What collecting the tests
leaves in memory is never searched for garbage. Nothing asks a host that only a public authority vouches for, and a
client reads the list of those for longer than all else that it does in a test.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import hypothesis

gc.disable()
# A shell lets what runs in the background ignore it, and so do the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Read when NumPy, scikit-learn or torch is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("no_authority.pem"))
hypothesis.settings.register_profile("day", deadline=None, max_examples=15)
hypothesis.settings.register_profile("night", deadline=None, max_examples=300)
hypothesis.settings.load_profile("night" if os.environ.get("PODIUM_NIGHTLY") else "day")


def pytest_collection_finish() -> None:
    """A million objects of modules and tests stay until the end: a full search of them takes a second each time. The
    usual searches of what is new take a tenth of all time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
