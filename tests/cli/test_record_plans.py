"""`podium record --plans`: what planners' plans called live is replayed without any worker, and gives equal traces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from refusal import one_sentence

from podium.evals import Comparison
from podium.evals.evaluation import Evaluation, evaluate
from podium.planners import open_baseline
from podium.recordings import Recording, RecordingHeader
from podium.tasks.recorded import RecordedTasks
from podium.team.opening import open_pool
from podium.testing import FaultServer
from podium.workers import VoteWorker

Podium = Callable[..., Any]
PLANNERS = ("random", "self-consistency:ada:3", "constant:refine.txt")
REFINE = """
model_id = [0, 1, 0]
subtasks = ["Answer the whole question.", "Find a fault in it.", "Mend it."]
access_list = [[], [0], ["all"]]
"""
WORKER = '[[worker]]\nname = "{name}"\nkind = "{kind}"\n{rest}price = {{ input = 1.0, output = 2.0 }}\n'
RECORD = (
    *("record", "made.parquet", "--pool", "live.toml", "--tasks", "sums.jsonl"),
    *("--questions", "6", "--split", "test"),
)


@dataclass
class Live:
    """A model that answers differently each time, as real ones do: what it says can only be replayed."""

    said: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Its answers by model and messages."""

    def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        earlier = self.said.setdefault((body["model"], messages[-1]["content"]), [])
        earlier.append(f"This is answer {self.calls} of {body['model']}.\nAnswer: {self.calls % 3}")
        return earlier[-1]

    @property
    def calls(self) -> int:
        return sum(map(len, self.said.values()))


@pytest.fixture
def live() -> Iterator[Live]:
    model = Live()
    with FaultServer(model).in_thread() as running:
        endpoint, replay = f'base_url = "{running.url}"\nmodel = "{{}}"\n', 'recording = "made.parquet"\n'
        for file, kind, rest in (("live", "openai", endpoint), ("replay", "replay", replay)):
            workers = (WORKER.format(name=n, kind=kind, rest=rest.format(n)) for n in ("ada", "bob"))
            Path(f"{file}.toml").write_text("".join(workers))
        Path("refine.txt").write_text(REFINE)
        rows = ({"question": f"What is {n} + 1?", "answer": f"{n % 3}", "split": "test"} for n in range(6))
        Path("sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        yield model


def record(podium: Podium, *more: str) -> Any:
    return podium(*RECORD, *(token for plan in PLANNERS for token in ("--plans", plan)), *more)


def replayed(name: str) -> Evaluation:
    """The planner over the recording, with the seed with which it was recorded."""
    pool = open_pool("replay.toml")
    tasks = RecordedTasks(Recording.open(Path("made.parquet")), "test")
    planner = open_baseline(name, pool.profiles, seed="0")
    with_vote = pool.joined([VoteWorker()])
    return asyncio.run(evaluate(planner, list(tasks), with_vote if "consistency" in name else pool, seed="0"))


def test_the_same_planners_need_no_worker_and_give_the_same_traces(podium: Podium, live: Live) -> None:
    made = record(podium, "--json")
    assert (made.status, made.err) == (0, "")
    header = RecordingHeader.model_validate_json(made.out)
    assert (header.plans, header.questions) == (PLANNERS, 6)
    asked = live.calls
    assert header.responses == asked, "every distinct call is made once and saved"
    for name in PLANNERS:
        evaluation = replayed(name)
        assert (sum(evaluation.unrecorded), evaluation.beyond_recording) == (0, 0.0)
        for rollout in evaluation.rollouts:
            assert (rollout.trace.status, rollout.grade.failure) == ("ok", None)
            given: list[str] = []
            for span in rollout.trace.spans:
                if span.status == "done" and span.worker != "vote":
                    # The model was sent these very messages, and its answer to them is what the step got.
                    assert span.response in live.said[span.worker, span.messages[-1].content]
                    given.append(span.response)
            assert len(set(given)) == len(given), "the same call made again had another answer"
    assert live.calls == asked


def test_a_recording_that_its_budget_stopped_asks_nothing_twice(podium: Podium, live: Live) -> None:
    starts = 0
    while (made := record(podium, "--budget-calls", "9", "--concurrency", "2")).status == 1:
        starts += 1
        assert live.calls == 9 * starts
        assert "Stopped: The budget of 9 calls is used up." in made.out
    assert starts > 2
    assert sum(replayed(name).unrecorded == [0] * 6 for name in PLANNERS) == 3
    assert Recording.open(Path("made.parquet")).header.responses == live.calls
    assert "made.parquet and made.json exist already" in one_sentence(record(podium))


def test_what_the_recording_lacks_is_counted_by_planner_and_never_invented(
    podium: Podium, live: Live
) -> None:
    rows = Path("sums.jsonl").read_text()
    Path("sums.jsonl").write_text(rows + rows.replace(" + 1", " + 4").replace('"test"', '"train"'))
    singles = tuple(token for n in ("ada", "bob") for token in ("--plans", f"single:{n}"))
    made = podium(*RECORD[:-4], "--questions", "12", *singles, "--plans", "constant:refine.txt")
    assert made.status == 0
    Path("refine.txt").write_text(REFINE.replace("Find a fault in it.", "Find two faults in it."))
    shown = podium("eval", "--tasks", "made.parquet", "--pool", "replay.toml", "--split", "test", "--json")
    assert shown.status == 0
    rows_of = {row.label: row for row in Comparison.model_validate_json(shown.out).rows}
    lacking = rows_of["constant:refine.txt, as recorded"].unrecorded
    assert lacking is not None
    # The critic's step, and the one that mends and so sees the answer without the critique.
    assert (lacking.steps, lacking.plans, lacking.of) == (12, 6, 6)
    assert rows_of["ada alone"].unrecorded is None
    told = podium(
        "eval", "--tasks", "made.parquet", "--pool", "replay.toml", "--split", "test", "--markdown"
    ).out
    assert (
        "constant:refine.txt, as recorded: the recording has no response to 12 steps in 6 of 6 plans; these steps "
        "failed, and the row shows the answers without them."
    ) in told
    assert "answer the plain question" not in told
    assert "each given to just what its step shows" in told
    assert "single:ada, as recorded" not in told
    Path("refine.txt").unlink()
    without = podium(
        "eval", "--tasks", "made.parquet", "--pool", "replay.toml", "--split", "test", "--markdown"
    )
    assert (without.status, "constant:refine.txt" in without.out) == (0, False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--plans", "randon"), "There is no baseline 'randon'; did you mean random?"),
        (
            ("--plans", "random", "--samples", "2"),
            "name a planner that does, such as self-consistency:WORKER:3",
        ),
        (("--plans", "random", "--cache", "c.sqlite"), "the recording keeps every answer itself"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_any_call(
    podium: Podium, live: Live, options: tuple[str, ...], sentence: str
) -> None:
    assert sentence in one_sentence(podium(*RECORD, *options))
    assert (live.calls, Path("made.partial").exists()) == (0, False)
