"""What is left of answers when calls fail: chains of sums over endpoints with 0 to 50 % of all calls at fault.

python benchmarks/faults.py [QUESTIONS] [CONCURRENCY]

Two servers on this machine stand for two providers of the same five models, whose answers are those of the scripted
team of the tests; so accuracy and dollars are simulated, and what is lost of them is not. Each call fails with the
given chance in one of 26 ways. All questions have one plan of three steps, so only faults make a difference. In the
same run the official openai client asks in Podium's place, with as many retries and the same time limit, but without
fallbacks, breakers or hedges.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openai

from podium.calls import CallState
from podium.errors import WorkerError
from podium.evals.stats import accuracy_interval
from podium.planners.planner import PrewrittenPlans
from podium.rollout import Rollout, run_rollout
from podium.store import TraceStore
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.trace import Reply, Trace
from podium.types import Limits, Profile, Usage
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium_testing import (
    Answer,
    BadCompression,
    ContentFilter,
    EmptyChoices,
    ErrorInside,
    Fault,
    FaultServer,
    GiantBody,
    Hang,
    HangUp,
    InvalidUtf8,
    Length,
    MissingUsage,
    NullContent,
    RateLimited,
    Redirect,
    Reset,
    Rule,
    SlowDrip,
    SlowFirstByte,
    Status,
    TruncatedJson,
    WrongContentType,
    WrongModel,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from scripted_team import Calculator, Sums, open_team

TIMEOUT_S, RETRIES, CONCURRENT_CALLS = 2.0, 3, 64
LIMITS = (
    f"timeout = {TIMEOUT_S}, retries = {RETRIES}, concurrency = {CONCURRENT_CALLS}, max_tokens = 1000, "
    "probe_after = 1.0"
)
SHARES = (0.0, 0.1, 0.3, 0.5)
PEER_SHARES = (0.0, 0.3)
PLAN = (
    'model_id = [0, 1, 4]\nsubtasks = ["Answer the question.", "Answer the question.", "Check both, and answer."]\n'
    'access_list = [[], [], ["all"]]'
)
TWIN = " elsewhere"
FAULTS: tuple[Fault, ...] = (
    RateLimited(),
    RateLimited(retry_after=1),
    RateLimited(retry_after=1, as_date=True),
    Status(code=500),
    Status(code=502, form="html"),
    Status(code=503, form="empty"),
    Hang(),
    Hang(when="middle"),
    SlowFirstByte(seconds=1.0),
    SlowDrip(seconds=0.05),
    Reset(),
    Reset(when="middle"),
    HangUp(when="middle"),
    TruncatedJson(),
    InvalidUtf8(),
    BadCompression(),
    WrongContentType(),
    EmptyChoices(),
    NullContent(),
    MissingUsage(),
    GiantBody(size=17 * 2**20),
    ContentFilter(),
    Length(),
    WrongModel(),
    Redirect(to="/v2/chat/completions"),
    ErrorInside(),
)


def rules(share: float) -> list[Rule]:
    """Each call fails with this chance, in all ways alike."""
    left = [share / len(FAULTS)] * len(FAULTS)
    # A rule is asked only where those before it gave nothing.
    return [
        Rule(fault=fault, share=chance / (1 - sum(left[:place])))
        for place, (fault, chance) in enumerate(zip(FAULTS, left, strict=True))
    ]


def answering(
    calculators: Sequence[Calculator],
) -> dict[str, Callable[[list[dict[str, Any]], dict[str, Any]], Awaitable[Answer]]]:
    """The models of a server: calculators, whose luck is the question's, however often they are asked."""

    def of(calculator: Calculator) -> Callable[[list[dict[str, Any]], dict[str, Any]], Awaitable[Answer]]:
        async def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
            sent = messages[-1]["content"]
            asked = re.search(r"What is \d+[^?]*\?", sent)
            seed = sha256(sent.encode()).hexdigest()
            return Answer(calculator.reply(asked[0] if asked else "", seed), len(sent) // 4, 120)

        return answer

    return {calculator.profile.name: of(calculator) for calculator in calculators}


def endpoints(calculators: Sequence[Calculator], first: str, second: str) -> Pool:
    """The calculators behind the first server, each with its twin behind the second to fall back on."""
    tables = []
    for url, suffix in ((first, ""), (second, TWIN)):
        for calculator in calculators:
            profile = calculator.profile
            fallback = "" if suffix else f'fallback = "{profile.name}{TWIN}"'
            tables.append(f"""
[[worker]]
name = "{profile.name}{suffix}"
kind = "openai"
model = "{profile.name}"
base_url = "{url}"
profile = "{profile.description}"
price = {{ input = {profile.price.input}, output = {profile.price.output} }}
{fallback}
limits = {{ {LIMITS} }}
""")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool.toml"
        path.write_text("\n".join(tables))
        return open_pool(path)


class ClientWorker(Worker):
    """A model behind the official client."""

    def __init__(self, profile: Profile, url: str) -> None:
        self.profile = profile
        # The client's own limit is for each try; a call of Podium's that was tried four times has as long.
        self.limits = Limits(timeout=60.0, retries=0, max_tokens=1000, concurrency=CONCURRENT_CALLS)
        self._client = openai.AsyncOpenAI(
            base_url=url, api_key="none", timeout=TIMEOUT_S, max_retries=RETRIES
        )

    async def answer(self, request: Request) -> Reply:
        """One call of the client, with its retries."""
        try:
            reply = await self._client.chat.completions.create(
                model=self.profile.name,
                messages=[{"role": "user", "content": request.messages[-1].content}],
                max_tokens=self.limits.max_tokens,
            )
            text = reply.choices[0].message.content
        except Exception as error:  # Whatever a client lets out is a failed call to whoever uses it.
            raise WorkerError(f"{type(error).__name__}", kind="protocol") from None
        if not text:
            raise WorkerError("no text", kind="protocol")
        usage = reply.usage
        counted = (
            Usage()
            if usage is None
            else Usage(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
        )
        return Reply(text, counted)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()


@dataclass(frozen=True)
class Figures:
    """What one way of asking made of the questions at one share of faults."""

    rollouts: tuple[Rollout, ...]
    seconds: float
    kept: int
    """Traces that the store holds afterwards."""

    def table_row(self, way: str, share: float) -> str:
        """As the table has it."""
        traces = [rollout.trace for rollout in self.rollouts]
        right = accuracy_interval([float(rollout.correct) for rollout in self.rollouts], rollouts=len(traces))
        spans = [span for trace in traces for span in trace.spans]
        interval = f"[{100 * right.low:.1f}, {100 * right.high:.1f}]"
        return (
            f"{way:<14} {share:5.0%}  {self.answered:8.2%}  {right.mean:6.1%} {interval}"
            f"  {sum(len(span.attempts) - 1 for span in spans if span.attempts):8d}"
            f"  {sum(span.answered_by != span.worker for span in spans if span.response):9d}"
            f"  {self.seconds:7.1f}  {1000 * sum(trace.cost_usd for trace in traces) / len(traces):8.3f}"
            f"  {len(traces) - self.kept:6d}"
        )

    @property
    def answered(self) -> float:
        """Share of questions with an answer."""
        return sum(rollout.trace.answer is not None for rollout in self.rollouts) / len(self.rollouts)

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return sum(rollout.correct for rollout in self.rollouts) / len(self.rollouts)


async def measure(pool: Pool, planner: PrewrittenPlans, tasks: Sequence[Task], concurrency: int) -> Figures:
    """Ask all questions, keep all traces."""
    call_state, pending, rollouts = CallState(), iter(list(enumerate(tasks))), {}
    with TemporaryDirectory() as folder, TraceStore(Path(folder) / "traces.sqlite") as store:

        async def work() -> None:
            for number, task in pending:
                runner = Runner(planner, pool, call_state=call_state)
                rollouts[number] = await run_rollout(runner, task, seed=f"faults/{task.id}")
                store.add(rollouts[number].trace)

        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        seconds = time.monotonic() - began
        store.flush()
        kept: set[str] = {summary.id for summary in store.list()}
    made: list[Trace] = [rollout.trace for rollout in rollouts.values()]
    return Figures(
        tuple(rollouts[number] for number in sorted(rollouts)),
        seconds,
        sum(trace.id in kept for trace in made),
    )


async def main(questions: int, concurrency: int) -> None:
    """All shares, Podium and its peer."""
    calculators = [worker for worker in open_team() if isinstance(worker, Calculator)]
    planner = PrewrittenPlans((PLAN,))
    tasks = list(Sums("test", size=questions, seed=0))
    models = answering(calculators)
    print(f"{questions} chains of sums, {concurrency} at once; accuracy and dollars are simulated\n")
    print(
        "asked by       fault  answered  accuracy, %         retries  fallbacks  seconds  $ / 1000  traces lost"
    )
    figures: dict[tuple[str, float], Figures] = {}
    async with FaultServer(models=models) as first, FaultServer(models=models, seed="second") as second:
        for way, shares in (("Podium", SHARES), ("openai client", PEER_SHARES)):
            for share in shares:
                first.rules = second.rules = rules(share) if share else []
                pool = (
                    endpoints(calculators, first.url, second.url)
                    if way == "Podium"
                    else Pool([ClientWorker(calculator.profile, first.url) for calculator in calculators])
                )
                figures[way, share] = await measure(pool, planner, tasks, concurrency)
                await pool.close()
                print(figures[way, share].table_row(way, share), flush=True)
    lost = {key: figures[key[0], 0.0].accuracy - kept.accuracy for key, kept in figures.items()}
    print(
        f"\nAt 30 % Podium loses {100 * lost['Podium', 0.3]:.1f} points, "
        f"the client {100 * lost['openai client', 0.3]:.1f}."
    )
    ratio = figures["Podium", 0.3].accuracy / figures["openai client", 0.3].accuracy
    slower = figures["Podium", 0.3].seconds / figures["openai client", 0.3].seconds
    print(f"Podium's accuracy is {ratio:.2f} times the client's there, in {slower:.2f} times its time.")


if __name__ == "__main__":
    asyncio.run(
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 2_000,
            int(sys.argv[2]) if len(sys.argv) > 2 else 64,
        )
    )
