"""The first process of a sandbox: carries out one order after another, each with exactly one reply.

It begins programs in processes of their own, speaks for them, and holds them to their allowance. Where it is the first
of a pid namespace, nothing that runs beside it can stop it, kill it or look into it. It knows no right answers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from podium.sandbox.inside import asserts, frames, program
from podium.sandbox.inside.allowance import Allowance
from podium.sandbox.inside.child import Child, supervise
from podium.sandbox.inside.exchange import Exchange
from podium.sandbox.inside.household import Household


def main() -> None:
    """Serve the orders that come in by standard input, until it is closed.

    Arguments of the command are how many processes count against the limit of processes though they run elsewhere, the
    user that programs run as (empty: the same as this process), and the folders of installed packages.
    """
    others, user, *packages = sys.argv[1:]
    sys.path += packages
    del os.environ["PYTHONPATH"]
    orders, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for end in range(3):
        os.dup2(nowhere, end)
    supervise()
    supervisor = Supervisor(orders, int(others), int(user) if user else None)
    frames.write(replies, frames.ENDED + b"ready\n")
    with suppress(OSError):  # where nobody hears the reply any more
        while (body := frames.read(orders)) is not None:
            frames.write(replies, supervisor.carry_out(body))
    supervisor.close()
    if (
        os.getpid() != 1
    ):  # where the folder is no memory that goes with us, and nobody else may be left to remove it
        import shutil  # noqa: PLC0415 - needed here alone

        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(0)  # at once: there is nothing left to be put in order


class Supervisor:
    """Carries out orders. A program that is begun ends the one before it."""

    def __init__(self, orders: int, others: int, user: int | None) -> None:
        self._orders = orders
        self._household = Household()
        self._others = others
        self._user = user
        self._child: Child | None = None
        self._allowance = Allowance()

    def carry_out(self, body: bytes) -> bytes:
        """The reply to an order: what the program said, or how it ended and its last words."""
        if body[:1] == frames.SAID:
            return self._exchange(frames.framed(body[1:]), until_frame=True)
        order = json.loads(body[1:])
        if order["do"] == "imports":
            return _load(order["source"])
        self._allowance = Allowance(**order["allowance"])
        deed = _deed(order["do"], order["with"])
        if order["do"] == "run":
            self._begin(deed, standard=True)
            return self._exchange(order["told"].encode("utf-8", "surrogatepass"), until_frame=False)
        self._begin(deed, standard=False)
        return self._exchange(b"", until_frame=True)

    def close(self) -> None:
        """End what runs, with all that came of it."""
        if self._child is not None:
            self._household.end(self._child.pid)
            self._child.close()
            self._child = None

    def _begin(self, deed: Callable[[], None], *, standard: bool) -> None:
        self.close()
        allowance = self._allowance._replace(processes=self._allowance.processes + self._others)
        self._child = Child(deed, allowance, standard=standard, user=self._user)

    def _exchange(self, told: bytes, *, until_frame: bool) -> bytes:
        """Speak with the child: the reply."""
        child = self._child
        if child is None:
            return _ended("gone")
        exchange = Exchange(child, self._household, self._allowance, self._orders)
        how = exchange.speak(told, until_frame=until_frame)
        if how is None:
            return frames.SAID + frames.taken(child.heard)
        status = self._household.end(child.pid)
        exchange.hear_out()  # all are dead that could write: it ends
        child.close()
        self._child = None
        if how == "ended":
            how = "killed" if status < 0 else "failed" if status else "done"
        return _ended(how, bytes(child.heard))


def _ended(how: str, words: bytes = b"") -> bytes:
    return frames.ENDED + how.encode() + b"\n" + words


def _load(imports: str) -> bytes:
    try:
        exec(imports, {"__name__": "imports"})
    except Exception as error:
        return _ended("failed", f"{type(error).__name__}: {error}".encode(errors="replace"))
    return _ended("done")


def _deed(kind: str, given: dict[str, Any]) -> Callable[[], None]:
    """What a child is to do."""

    def deed() -> None:
        if kind == "run":
            program.run(**given)
        elif kind == "program":
            program.serve(**given)
        elif kind == "asserts":
            asserts.check(**given)
        else:
            from podium.sandbox.inside import suite  # noqa: PLC0415 - few need unittest

            suite.check_suite(**given)

    return deed
