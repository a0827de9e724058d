"""Tells an answer piece by piece while it comes, as scrubbed of secrets as the whole will be.

What could be the beginning of a secret is held back until more of it has come.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.workers.chat.draft import encodable
from podium.workers.secrets import Secrets


class Telling:
    """One reply's.

    Args:
        tell: given each piece.
        secrets: what no piece may hold.
    """

    def __init__(self, tell: Callable[[str], None], secrets: Secrets) -> None:
        self._tell = tell
        self._secrets = secrets
        self._held = ""

    def add(self, text: str) -> None:
        """The next piece."""
        self._held += text
        end = self._secrets.open_end(self._held)
        if (
            end and "\ud800" <= self._held[end - 1] <= "\udbff"
        ):  # Half of a character; the other half may follow.
            end -= 1
        self._pass_on(end)

    def end(self) -> None:
        """There are no more."""
        self._pass_on(len(self._held))

    def _pass_on(self, end: int) -> None:
        if ready := self._secrets.scrub(encodable(self._held[:end])):
            self._held = self._held[end:]
            self._tell(ready)
