"""A team of three workers behind a real server, for the clients.

The workers are at one endpoint. The Conductor writes the same plan of two steps for every question: the second step
answers, and has the caller's tools.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from served_process import served

MADE = Path(os.environ.get("PODIUM_CLIENTS", "runs/clients"))
"""The folder of the environments."""
PLAN = 'model_id = [1, 0]\nsubtasks = ["Take notes.", "Answer the question."]\naccess_list = [[], ["all"]]'
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
calls_tools = true
sees = true
price = {{ input = 1.0, output = 2.0 }}
"""


@contextmanager
def endpoint(*command: str) -> Iterator[str]:
    """The address of an endpoint of models in a process of its own."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


@contextmanager
def team(folder: Path, workers: str) -> Iterator[str]:
    """The address of a server over three workers at one endpoint."""
    rules = folder / "conductor.toml"
    rules.write_text(f"answer = '''{PLAN}'''")
    with endpoint("-m", "podium_testing", str(rules)) as conductor:
        pool = folder / "pool.toml"
        pool.write_text(
            f'[conductor]\nbase_url = "{conductor}"\nmodel = "conductor"\nfallback = "quill"\n'
            + "".join(WORKER.format(name=name, url=workers) for name in ("quill", "lark", "wren"))
        )
        with served(folder, "--pool", str(pool)) as running:
            yield running.url
