"""A spend limit in whose file nothing can be written any more."""

from podium.errors import StoreError


class Away:
    """A spend limit whose file cannot be written after some calls."""

    refusal = None
    exhausted = False

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls

    def reserve(self, usd: float) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise StoreError("The spend limit cannot be written.")

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        return None

    async def wait_for_room(self, usd: float) -> bool:
        return False
