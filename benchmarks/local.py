"""From question to answer on models of one's own machine, beside the same calls by hand with openai's client.

    python benchmarks/local.py LARGE_URL SMALL_URL [--questions 5] [--json FILE]

The two addresses are servers of published models (`runs/published_models.py serve`). The large one conducts, held to a
JSON schema, and works with the small one. Each question is asked three times, in turns: by hand (the plan, json.loads,
then each step once the steps that it reads have ended, independent ones at once), with Podium where steps wait for the
whole plan, and with Podium as it is. All three send the same messages and decode greedily, so they write the same
tokens; answers that differ are counted. No server keeps what it read from one call to the next. Plans of one step have
nothing to overlap, and are left out of the figures. The time in which the plan is written begins with its first token,
which the call by hand tells.

Overlap can save no more than two servers at once do: before the questions both write alone, then together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from openai import AsyncOpenAI

from podium import Team
from podium.trace import Span, Trace
from podium.types import Message
from podium.workflow import PlanRules, plan_schema
from rows import Row, differing, report
from sums import QUESTIONS

MAX_STEPS = 3
PLAN_TOKENS = 400
STEP_TOKENS = 120
COUNT = (Message(role="user", content="Count from 1 to 200, a number in each line, and write nothing else."),)


class Server:
    """One server of a model, and the name that it has in the team."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        # llama.cpp closes a connection after a stream, and openai's client would use it again.
        self.client = AsyncOpenAI(
            base_url=url,
            api_key="none",
            timeout=600,
            max_retries=0,
            default_headers={"Connection": "close"},
        )

    def table(self, profile: str) -> str:
        """The worker's table in a team file."""
        return (
            f'[[worker]]\nname = "{self.name}"\nkind = "openai"\nmodel = "m"\nbase_url = "{self.url}"\n'
            f'profile = "{profile}"\ntemperature = 0.0\nextra = {{ cache_prompt = false }}\n'
            f"limits = {{ max_tokens = {STEP_TOKENS}, retries = 0, timeout = 600 }}\n\n"
        )

    async def answer(
        self, messages: Sequence[Message], *, max_tokens: int = STEP_TOKENS, **more: Any
    ) -> tuple[str, float]:
        """What the model answers, by openai's client alone, and the seconds until its first token."""
        began, first, text = time.perf_counter(), 0.0, ""
        stream = await self.client.chat.completions.create(
            model="m",
            messages=[{"role": message.role, "content": message.content} for message in messages],
            temperature=0.0,
            max_tokens=max_tokens,
            stream=True,
            extra_body={"cache_prompt": False},
            **more,
        )
        async for chunk in stream:
            written = chunk.choices[0].delta.content if chunk.choices else None
            if written:
                first, text = first or time.perf_counter() - began, text + written
        return text, first

    async def speed(self) -> float:
        """Tokens a second of a long answer."""
        began = time.perf_counter()
        _, first = await self.answer(COUNT, max_tokens=STEP_TOKENS)
        return (STEP_TOKENS - 1) / (time.perf_counter() - began - first)


async def by_hand(large: Server, small: Server, trace: Trace) -> tuple[float, float, list[str]]:
    """Seconds of the calls of a trace, made by hand, those until the plan's first token, and the steps' answers."""
    servers = {server.name: server for server in (large, small)}
    names = tuple(profile.name for profile in trace.pool)
    exact = plan_schema(
        "exact", PlanRules(workers=len(names), names=names, max_steps=MAX_STEPS), max_tokens=PLAN_TOKENS
    )
    schema = {"name": "write_plan", "schema": exact, "strict": True}
    (round_,) = trace.rounds
    began = time.perf_counter()
    written, first = await large.answer(
        round_.plan.messages,
        max_tokens=PLAN_TOKENS,
        response_format={"type": "json_schema", "json_schema": schema},
    )
    steps = json.loads(written)["steps"]
    if [step["subtask"].strip() for step in steps] != [span.subtask for span in round_.spans]:
        print("by hand the model wrote another plan; the figures have other tokens")
    ended = [asyncio.Event() for _ in round_.spans]
    answers = [""] * len(round_.spans)

    async def step(span: Span) -> None:
        for earlier in span.reads:
            await ended[earlier].wait()
        answers[span.position], _ = await servers[span.worker].answer(span.messages)
        ended[span.position].set()

    async with asyncio.TaskGroup() as group:
        for span in round_.spans:
            if span.called:
                group.create_task(step(span))
            else:
                ended[span.position].set()
    return time.perf_counter() - began, first, answers


def answers_of(trace: Trace) -> list[str]:
    """What each step's call was answered; "" for a step without a call."""
    return [(span.response or "") if span.called else "" for span in trace.spans]


async def print_speeds(large: Server, small: Server) -> None:
    """Print what each server writes a second alone, and while the other one writes."""
    alone = [await large.speed(), await small.speed()]
    together = await asyncio.gather(large.speed(), small.speed())
    print(
        f"tokens a second: {large.name} {alone[0]:.2f} alone, {together[0]:.2f} beside {small.name}; "
        f"{small.name} {alone[1]:.2f} alone, {together[1]:.2f} beside {large.name}",
        flush=True,
    )


def write_team(file: Path, large: Server, small: Server) -> Path:
    """Write the team file of the two servers."""
    file.write_text(
        f'[conductor]\nbase_url = "{large.url}"\nmodel = "m"\ntemperature = 0.0\nprompt = {{ style = "short" }}\n'
        f"limits = {{ max_tokens = {PLAN_TOKENS}, retries = 0, timeout = 600 }}\n"
        "extra = { cache_prompt = false }\n\n"
        + large.table("The strongest: mathematics step by step, and Python programs.")
        + small.table("Easy arithmetic, rewording, and checks of what others found.")
    )
    return file


async def measure(team: Path, large: Server, small: Server, questions: int) -> list[Row]:
    """Ask the first questions in the three ways."""
    keys: dict[str, Any] = {"plan.max_steps": MAX_STEPS}
    seconds: dict[str, list[float]] = {"by hand": [], "waits": [], "overlaps": []}
    read: dict[int, float] = {}
    started: dict[int, tuple[float, float]] = {}
    answered, unlike = 0, 0
    async with (
        Team.open(team, **keys) as overlapping,
        Team.open(team, **keys | {"plan.overlap": False}) as waiting,
    ):
        await print_speeds(large, small)
        for number, question in enumerate(QUESTIONS[:questions]):
            trace = await waiting.ask(question, seed="benchmark")
            (round_,) = trace.rounds
            steps = ", ".join(f"{span.worker} {span.seconds:.0f} s" for span in round_.spans)
            print(
                f"question {number + 1}: {trace.status}, {trace.usage.output_tokens} tokens, the plan "
                f"{round_.plan.seconds:.0f} s, then {steps}",
                flush=True,
            )
            if len(round_.spans) < 2 or trace.status != "ok":
                continue
            turns = ["by hand", "waits", "overlaps"]
            for turn in turns[number % 3 :] + turns[: number % 3]:
                if turn == "by hand":
                    took, read[number], answers = await by_hand(large, small, trace)
                else:
                    asked = overlapping if turn == "overlaps" else waiting
                    again = await asked.ask(question, seed="benchmark")
                    took, answers = again.seconds, answers_of(again)
                    if again.usage.output_tokens != trace.usage.output_tokens:
                        print(
                            f"{turn}: {again.usage.output_tokens} tokens in place of {trace.usage.output_tokens}"
                        )
                    if turn == "overlaps":
                        start = min(span.started_s for span in again.spans if span.called)
                        started[number] = start, again.rounds[0].plan.seconds
                seconds[turn].append(took)
                answered += len(answers)
                for one, other in differing(answers, answers_of(trace)):
                    unlike += 1
                    print(f"  {turn} was answered {one!r} in place of {other!r}", flush=True)
                print(f"  {turn}: {took:.1f} s", flush=True)
    await asyncio.gather(large.client.close(), small.client.close())
    if not started:
        return []
    shares = [(start - read[number]) / (plan - read[number]) for number, (start, plan) in started.items()]
    hand = fmean(seconds["by hand"])
    return [
        Row(
            "question to answer, steps wait for the plan",
            fmean(seconds["waits"]),
            "s",
            "by hand",
            hand,
            "",
            False,
        ),
        Row("question to answer", fmean(seconds["overlaps"]), "s", "by hand", hand, "≤ 0.75", False),
        Row(
            "first worker begins, of the time in which the plan is written",
            fmean(shares),
            "share",
            goal="≤ 0.4 share",
            higher_is_better=False,
        ),
        Row(f"greedy answers of {answered} that differ", unlike, "answers", goal="0", higher_is_better=False),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("large")
    parser.add_argument("small")
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    large, small = Server("large", given.large), Server("small", given.small)
    with TemporaryDirectory() as folder:
        team = write_team(Path(folder) / "team.toml", large, small)
        rows = asyncio.run(measure(team, large, small, given.questions))
    report(rows, given.json)


if __name__ == "__main__":
    main()
