"""Importers: each reads one kind of source into a gathering, streaming, and says what it left out."""

from podium.recordings.importers.import_report import ImportReport
from podium.recordings.importers.mmlu_pro import gather_mmlu_pro
from podium.recordings.importers.reasoning_gym import gather_reasoning_gym
from podium.recordings.importers.table import Mapping, gather_table, read_mapping
from podium.recordings.importers.traces import gather_traces, read_traces
from podium.recordings.importers.zeroeval import gather_zeroeval

__all__ = [
    "ImportReport",
    "Mapping",
    "gather_mmlu_pro",
    "gather_reasoning_gym",
    "gather_table",
    "gather_traces",
    "gather_zeroeval",
    "read_mapping",
    "read_traces",
]
