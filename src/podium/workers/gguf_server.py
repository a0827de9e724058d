"""The program of a child process that serves one GGUF file with llama.cpp's own server. `gguf` starts it.

The program imports nothing of Podium. It prints the server's address once the model answers. It ends when its input
ends, which also happens when Podium is killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
import urllib.error
import urllib.request

import xllamacpp

_POLL_S = 0.05


def main(settings: str) -> None:
    """Serve until the input ends.

    Args:
        settings: JSON with `file`, `slots`, `context` (tokens of each slot) and `threads` (null: llama.cpp's choice).
    """
    _end_with_input()
    wanted = json.loads(settings)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the parent reads the address from the output, where the library must not print
    parameters = xllamacpp.CommonParams()
    parameters.model.path = wanted["file"]
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.n_parallel, parameters.n_ctx = wanted["slots"], wanted["slots"] * wanted["context"]
    parameters.use_jinja = True
    parameters.verbosity = 1  # errors alone
    if wanted["threads"] is not None:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = wanted["threads"]
    server = xllamacpp.Server(parameters)
    while not _answers(server.listening_address):
        time.sleep(_POLL_S)
    print(server.listening_address, file=replies, flush=True)
    sys.stdin.read()
    os._exit(0)  # at once, even while it writes an answer


def _end_with_input() -> None:
    """End the process as soon as its input ends.

    This uses a signal, since no Python thread runs while the library loads a model, which may take minutes.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:  # Nobody writes to the input, so it has ended already.
        os._exit(0)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health") as reply:
            return bool(reply.status == 200)
    except urllib.error.HTTPError:
        return False  # status 503: the server still loads the model


if __name__ == "__main__":
    main(sys.argv[1])
