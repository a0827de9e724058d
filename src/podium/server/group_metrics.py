"""The metrics of several processes as one text: those of each process, with the label `process`.

They are not summed, because a process that is replaced begins at 0, and Prometheus notices that only in its own series.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from podium.server.process_peers import ProcessPeers
from podium.server.streaming import Write


def answer_metrics(peers: ProcessPeers, registry: CollectorRegistry) -> None:
    """Let the other processes read the metrics of this one."""

    async def answer(_: object, write: Write) -> None:
        await write(_to_json(registry.collect()))

    peers.answers["metrics"] = answer


async def collect_group_metrics(peers: ProcessPeers, registry: CollectorRegistry) -> CollectorRegistry:
    """The metrics of this process and of all others that answer."""
    replies = await peers.ask("metrics")
    texts = {peers.number: _to_json(registry.collect()), **replies}
    merged = CollectorRegistry()
    merged.register(_Merged({number: texts[number] for number in sorted(texts)}))
    return merged


def _to_json(metrics: Iterable[Metric]) -> bytes:
    rows = []
    for metric in metrics:
        samples = [(sample.name, sample.labels, sample.value) for sample in metric.samples]
        rows.append((metric.name, metric.documentation, metric.type, metric.unit, samples))
    return json.dumps(rows).encode()


class _Merged(Collector):
    """The metrics of several processes.

    Args:
        texts: from `_to_json`, by the number of the process.
    """

    def __init__(self, texts: Mapping[int, bytes]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        merged: dict[str, Metric] = {}
        for number, text in self._texts.items():
            for name, documentation, kind, unit, samples in json.loads(text):
                metric = merged.setdefault(name, Metric(name, documentation, kind, unit))
                for sample, labels, value in samples:
                    metric.add_sample(sample, {**labels, "process": str(number)}, value)
        yield from merged.values()
