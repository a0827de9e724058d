"""Sends requests to a scoring service over HTTP.

A client sends any number of requests at once, and the service limits the calls of its workers. If the service restarts,
the client repeats its requests. The service keeps the answers that it has paid for in its run's folder.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self, TypeVar

import aiohttp
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from podium.calls import RetrySettings
from podium.errors import ConfigError, PodiumError, ServiceError, UsageError
from podium.scoring.protocol import SETTINGS_HEADER, ErrorReply, RolloutRequest, Score, SessionInfo
from podium.scoring.settings import ScoringSettings
from podium.types import Message
from podium.workers.connections import Connections

PATIENCE_S = 60.0
"""Seconds for which a client repeats a request while the service is away."""
_CONNECT_S = 10.0
_BACK_OFF, _LONGEST_WAIT_S = RetrySettings(first_wait_s=0.05), 5.0
_UNEQUAL = 409
"""The status of a refused request that expects other settings."""
_PROMPT: TypeAdapter[tuple[Message, ...] | None] = TypeAdapter(tuple[Message, ...] | None)
_SCORE = TypeAdapter(Score)
_INFO = TypeAdapter(SessionInfo)

T = TypeVar("T")


class ScoringClient:
    """A `ScoringBackend` over HTTP.

    Args:
        url: the service's address, as `podium score-server` prints it.
        key: the service's key. None if the service has no key.
        settings: the settings by which this run scores. A service with other settings refuses every request. If it is
            None, any settings will do.
        patience_s: seconds for which requests are repeated after a connection error or a status from 500 on.

    Raises:
        UsageError: `url` is not an http or https address.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        settings: ScoringSettings | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._url = _address(url)
        self._settings = settings
        self._patience_s = patience_s
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._connections = Connections()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        """Ask for the messages of the prompt for a rollout's next plan. None if no further round follows.

        Raises:
            ServiceError: the service cannot be reached, or failed, for longer than `patience_s`.
            ConfigError: the service scores by other settings.
            UsageError: the service refuses the key.
        """
        return await self._ask("POST", "prompt", _PROMPT, request)

    async def score(self, request: RolloutRequest) -> Score:
        """Have the service run and reward the latest plan of a rollout.

        Raises:
            BudgetExceededError: the dollars that the service's run or the day may cost are spent.
            PodiumError: the errors that `prompt` raises.
        """
        return await self._ask("POST", "score", _SCORE, request)

    async def info(self) -> SessionInfo:
        """Describe the service's session, whatever settings it has."""
        return await self._ask("GET", "health", _INFO)

    async def close(self) -> None:
        """Close the running loop's connections. Calling this twice is fine. A later request opens new connections."""
        await self._connections.close()

    async def _ask(
        self, method: str, route: str, form: TypeAdapter[T], request: RolloutRequest | None = None
    ) -> T:
        """Send one request and read the reply as `form`. While the service is away, repeat the request."""
        body = b"" if request is None else request.model_dump_json().encode()
        now = asyncio.get_running_loop().time
        until: float | None = None
        retry = 0
        while True:
            began = now()
            try:
                status, content = await self._attempt(method, route, body)
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or type(error).__name__
                failure: PodiumError = ServiceError(
                    f"The scoring service at {self._url} cannot be reached ({why}); start it again."
                )
            else:
                try:
                    if status == 200:
                        return form.validate_json(content)
                    failure = ErrorReply.model_validate_json(content).error
                except ValidationError:
                    failure = ServiceError(
                        f"The server at this address is not a scoring service (it replied with status {status}); "
                        "check the address."
                    )
                if status == _UNEQUAL and self._settings is not None:
                    failure = await self._with_differences(failure)
                if status < 500:
                    raise failure
            # If the last attempt ran for longer than `patience_s` before it broke, this is a new outage.
            if until is None or now() - began > self._patience_s:
                until = now() + self._patience_s
            wait_s = min(_LONGEST_WAIT_S, _BACK_OFF.wait_s(retry, None))
            if now() + wait_s > until:
                raise failure
            await asyncio.sleep(wait_s)
            retry += 1

    async def _attempt(self, method: str, route: str, body: bytes) -> tuple[int, bytes]:
        headers = self._headers
        if self._settings is not None and method == "POST":
            headers = headers | {SETTINGS_HEADER: self._settings.digest}
        session = await self._connections.session()
        async with session.request(
            method,
            self._url / route,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        ) as response:
            return response.status, await response.read()

    async def _with_differences(self, refusal: PodiumError) -> PodiumError:
        """The refusal with the names of the settings that differ."""
        assert self._settings is not None
        ours, theirs = self._settings.scoring, (await self.info()).settings
        differing = [key for key in ours if ours[key] != theirs.get(key)]
        differences = "; ".join(
            f"{key} is {_show(theirs, key)} there and {_show(ours, key)} here" for key in differing
        )
        return ConfigError(f"{refusal} These differ: {differences}.") if differences else refusal


def _address(url: str) -> URL:
    try:
        address = URL(url.strip().rstrip("/"))
    except ValueError:
        address = URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise UsageError(
            f"{url!r} is no address of a scoring service; give it as `podium score-server` prints it, "
            "such as http://127.0.0.1:8500."
        )
    return address


def _show(settings: dict[str, Any], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False) if key in settings else "not set"
