"""Models of one machine whose memory holds only some of them: the others are loaded when they are asked."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from typing import Any

from podium_testing.completion import Answer, AnswerFunction, AnswerLike, make_answer


class SwappedModels:
    """An answer that comes once its model is loaded: `FaultServer(SwappedModels("42", load_s=5))`.

    Requests are served in the order in which they came, as by servers that load by themselves: one whose model is not
    loaded waits until another has no request in flight, takes its place, and holds up those behind it.

    Args:
        answer: the answer itself, as a `FaultServer` takes it.
        load_s: seconds that it takes to load a model.
        loaded_at_once: models that the memory holds.
    """

    def __init__(
        self, answer: AnswerLike | AnswerFunction, *, load_s: float, loaded_at_once: int = 1
    ) -> None:
        self._answer = answer
        self._load_s = load_s
        self._loaded_at_once = loaded_at_once
        self._loaded: OrderedDict[str, None] = OrderedDict()
        """Those that were asked last come last."""
        self._in_flight: Counter[str] = Counter()
        self._arrivals = asyncio.Lock()
        self._ended = asyncio.Event()
        self.loads: list[str] = []
        """Each model that was loaded."""

    async def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        """The answer, once the model is loaded."""
        model = body["model"]
        async with self._arrivals:
            await self._load(model)
            self._in_flight[model] += 1
        try:
            return await make_answer(self._answer, body)
        finally:
            self._in_flight[model] -= 1
            self._ended.set()

    async def _load(self, model: str) -> None:
        if model not in self._loaded:
            while len(self._loaded) >= self._loaded_at_once:
                idle = next((name for name in self._loaded if not self._in_flight[name]), None)
                if idle is not None:
                    del self._loaded[idle]
                    break
                self._ended.clear()
                await self._ended.wait()
            await asyncio.sleep(self._load_s)
            self.loads.append(model)
            self._loaded[model] = None
        self._loaded.move_to_end(model)
