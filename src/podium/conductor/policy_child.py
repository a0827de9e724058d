"""The program of a child process that writes completions. `process_policy` starts it and explains its purpose.

It reads requests from its standard input, and sends each completion to its standard output as soon as it is written. It
ends when its input is closed, which also happens when its parent process is killed.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import cache, partial
from multiprocessing.connection import Connection
from threading import Lock

from podium.conductor.local_policy import LocalPolicy
from podium.conductor.opening import open_policy
from podium.conductor.policy import Completion
from podium.conductor.process_policy import Cancel, Write, Written
from podium.errors import UsageError


def main() -> None:
    """Write completions until the input ends."""
    requests, replies = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # What a library prints must not come between the replies.
    policy_of = cache(open_policy)
    wanted: dict[int, Future[Completion]] = {}
    sending = Lock()

    def send(number: int, done: Future[Completion]) -> None:
        del wanted[number]
        if done.cancelled():
            return
        error = done.exception()
        if error is not None and not isinstance(error, UsageError):
            # A bug, or too little memory. The parent writes this completion instead, and raises the same exception.
            os._exit(1)
        try:
            with sending:
                replies.send(Written(number, error or done.result()))
        except OSError:
            os._exit(0)

    try:
        replies.send(None)
        while True:
            message: Write | Cancel = requests.recv()
            if isinstance(message, Write):
                policy = policy_of(message.folder)
                assert isinstance(policy, LocalPolicy)
                wanted[message.number] = done = policy.submit(message.messages, message.sampling)
                done.add_done_callback(partial(send, message.number))
            elif (unwanted := wanted.get(message.number)) is not None:
                unwanted.cancel()
    except (EOFError, OSError):
        os._exit(0)  # Exit at once, even while a completion is being written.


if __name__ == "__main__":
    main()
