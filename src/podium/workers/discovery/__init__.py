"""Finds what could be a worker here: the models of servers on this machine, and the keys of known providers.

It only asks for lists of models, so it costs nothing. `podium init` proposes a pool from them.
"""

from podium.workers.discovery.models import FoundModel, FoundServer, is_chat_model, parameters_in
from podium.workers.discovery.providers import FoundKey, Provider, found_keys, list_models
from podium.workers.discovery.servers import find_servers

__all__ = [
    "FoundKey",
    "FoundModel",
    "FoundServer",
    "Provider",
    "find_servers",
    "found_keys",
    "is_chat_model",
    "list_models",
    "parameters_in",
]
