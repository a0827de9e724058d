"""Keys: who may ask, how often, and for how much."""

from podium.server.keys.caller import ANONYMOUS, Caller
from podium.server.keys.keys import Keys, is_loopback, open_register, require_keys

__all__ = ["ANONYMOUS", "Caller", "Keys", "is_loopback", "open_register", "require_keys"]
