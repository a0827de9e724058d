"""Keys: who may ask, how often, and for how much."""

from podium.server.keys.caller import NOBODY, Caller
from podium.server.keys.guard import is_loopback, require_keys
from podium.server.keys.keys import Keys
from podium.server.keys.opening import open_register

__all__ = ["NOBODY", "Caller", "Keys", "is_loopback", "open_register", "require_keys"]
