"""API keys: who may use the server, how often, and for how many dollars."""

from podium.server.keys.caller import ANONYMOUS, Caller
from podium.server.keys.keys import Keys, open_key_store

__all__ = ["ANONYMOUS", "Caller", "Keys", "open_key_store"]
