"""The process that runs the library: reads orders from its input and writes a reply to each, until its input ends.

What an order may take is limited (`limits`). It is no sandbox: who runs here is the library, with the programs that its
`codeio` ships; of answers `strict` lets nothing through that would be run as a program.
"""

from __future__ import annotations

import os
import shutil
import sys

from podium.errors import ConfigError, GraderError
from podium.tasks.gym.library import Library
from podium.tasks.gym.limits import SECONDS_TO_JUDGE, SECONDS_TO_MAKE, allow, confine
from podium.tasks.gym.order import Order, Reply


def main(folder: str) -> None:
    """Obey until the input ends.

    Args:
        folder: its own, where the library may leave what it likes.
    """
    orders = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    confine()
    library = Library()
    for line in orders:
        replies.write(_reply(library, Order.model_validate_json(line)).model_dump_json() + "\n")
        replies.flush()
    # Who started this process may be gone, and cannot.
    shutil.rmtree(folder, ignore_errors=True)


def _reply(library: Library, order: Order) -> Reply:
    if order.draw is None:
        return Reply(names=library.names)
    try:
        if order.do == "make":
            allow(SECONDS_TO_MAKE)
            return Reply(drawn=library.make(order.draw))
        # Apart and with patience: an answer is not charged for its question, which may have to be made again.
        allow(10 * SECONDS_TO_MAKE)
        library.recall(order.draw)
        allow(SECONDS_TO_JUDGE)
        return Reply(score=library.judge(order.draw, order.answer, order.digest))
    except (ConfigError, GraderError) as error:
        return Reply(refusal=str(error))


def _silence() -> None:
    """Generators print; nothing of it may come between the replies."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(sys.argv[1])
