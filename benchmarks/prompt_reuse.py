"""Whether a prompt is read once: tokens that a real llama.cpp server read, beside those that it had to.

    python benchmarks/prompt_reuse.py URL [--json FILE]

URL is the address of a llama.cpp server with one slot, as `runs/published_models.py serve FILE PORT NAME 1` starts it.
Its model is the Conductor and both workers, so that all that one step reads could serve another. It reads each prompt
of the Conductor, and the plan is then a fixed one. What it took from its cache is its own count.

A prompt had to be read but for those of its paragraphs that stand in one earlier prompt of the Conductor, or of a
worker, whatever their order, or but for its beginning, if that leaves less; which earlier one, is chosen so that the
least is left. Its last paragraph had to be read in any case, since it can stand nowhere else. So the ratio says what
the order of the messages costs, and what the server forgot.

The last column counts the same prompts as a provider with cache prices would: one that keeps prefixes of at least
1,024 tokens, in blocks of 128, and takes a tenth of the price for what it kept. It is the share of the full price.

Then all is asked once more while the server keeps nothing (`cache_prompt = false`). Decoding is greedy, so the workers'
answers should be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

from podium.calls import AttemptLog, CallContext, CallState
from podium.conductor import PromptSettings
from podium.conductor.conductor import Conductor
from podium.conductor.policy import Completion, Sampling, WorkerPolicy
from podium.team.runner import Runner
from podium.team.team_file import open_pool
from podium.trace import Trace
from podium.types import Budget, Message, Question, Usage
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render
from rows import Row, differing, report
from sums import QUESTIONS

SUBTASKS = (
    "List the quantities that the question names, with their units, and say what is asked for.",
    "Compute the result step by step, and write each intermediate value in a line of its own.",
    "Compute the result in another way than the one before, and compare.",
    "Look for a mistake in what was computed, and name it if there is one.",
    "Write the complete answer for the user in two short sentences.",
)
_GAP = "\n\n"
"""Between two paragraphs of a prompt."""
LEAST_TOKENS, BLOCK_TOKENS, CACHED_PRICE = 1024, 128, 0.1
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "m"
base_url = "{url}"
profile = "{profile}"
temperature = 0.0
limits = {{ max_tokens = 12, timeout = 600, retries = 1 }}
extra = {{ cache_prompt = {kept} }}
"""
PROFILES = {"ada": "Careful with numbers.", "bert": "Writes well."}


def plan(steps: int, begins: str = "") -> Workflow:
    """A plan whose first two steps see nothing, and whose others see all before them; the workers take turns.

    Args:
        begins: how each subtask begins.
    """
    subtasks = [f"{begins}{text}" for text in (*SUBTASKS[: steps - 1], SUBTASKS[-1])]
    return Workflow(
        tuple(Step(k % 2, text, Access(all=k > 1 or k == steps - 1 > 0)) for k, text in enumerate(subtasks))
    )


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """The model reads each prompt and writes one token; the plan is another."""

    policy: WorkerPolicy
    plans: list[Workflow]
    name: str = "fixed"
    plan_format: None = None

    async def complete(
        self,
        messages: tuple[Message, ...],
        sampling: Sampling,
        context: CallContext | None = None,
        log: AttemptLog | None = None,
    ) -> Completion:
        read = await self.policy.complete(
            messages, replace(sampling, max_tokens=1, schema=None), context, log
        )
        written = render(self.plans.pop(0), "structured", names=(*PROFILES,), thought="Both.")
        return replace(read, text=written, truncated=False)


class Prompts:
    """The prompts of the Conductor, or of the workers, that the server was sent, and what each had to be read of.

    Args:
        url: the server's address, which counts tokens too.
    """

    def __init__(self, url: str) -> None:
        self._url = url.removesuffix("/v1")
        self._counted: dict[str, int] = {}
        self._texts: list[str] = []
        self._paragraphs: list[Counter[str]] = []

    def needed(self, text: str) -> int:
        """Tokens that had to be read."""
        *body, last = text.split(_GAP)
        paragraphs = Counter(body)
        left = [self._tokens(paragraphs - earlier) for earlier in self._paragraphs]
        anew = self._tokens(Counter(text.split(_GAP))) - self._begun(text)
        return min([*(tokens + self._count(last) for tokens in left), anew])

    def kept(self, text: str) -> int:
        """Tokens that a provider would have kept."""
        tokens = self._begun(text)
        return tokens // BLOCK_TOKENS * BLOCK_TOKENS if tokens >= LEAST_TOKENS else 0

    def _begun(self, text: str) -> int:
        """Tokens of the longest beginning that an earlier prompt has too."""
        pairs = (zip(text, earlier, strict=False) for earlier in self._texts)
        shared = (sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], one)) for one in pairs)
        return self._tokens(Counter(text[: max(shared, default=0)].split(_GAP)))

    def sent(self, text: str) -> int:
        """All its tokens. From now on it is an earlier prompt."""
        self._texts.append(text)
        self._paragraphs.append(Counter(text.split(_GAP)))
        return self._tokens(self._paragraphs[-1])

    def _tokens(self, paragraphs: Counter[str]) -> int:
        return sum(self._count(text) * times for text, times in paragraphs.items())

    def _count(self, paragraph: str) -> int:
        if paragraph not in self._counted:
            body = json.dumps({"content": f"{paragraph}{_GAP}"}).encode()
            with urlopen(
                Request(f"{self._url}/tokenize", body, {"Content-Type": "application/json"})
            ) as reply:
                self._counted[paragraph] = len(json.load(reply)["tokens"])
        return self._counted[paragraph]


@dataclass(slots=True)
class Counts:
    """The tokens of some prompts."""

    sent: int = 0
    read: int = 0
    needed: float = 0.0
    kept: float = 0.0

    def add(self, messages: Sequence[Message], usage: Usage, prompts: Prompts) -> None:
        """Count one prompt."""
        text = _GAP.join(f"<|im_start|>{one.role}\n{one.content}<|im_end|>" for one in messages)
        text += "\n<|im_start|>assistant\n"
        needed, kept = prompts.needed(text), prompts.kept(text)
        # The sum of the paragraphs' tokens is not quite that of the whole text.
        scale = usage.input_tokens / prompts.sent(text)
        self.sent += usage.input_tokens
        self.read += usage.input_tokens - usage.cached_tokens
        self.needed += scale * needed
        self.kept += scale * kept

    @property
    def share_of_price(self) -> float:
        """What a provider takes for them, by the price of as many tokens that are not kept."""
        return 1 - (1 - CACHED_PRICE) * self.kept / self.sent


class Experiment:
    """Asks questions of one team and counts what is read for them."""

    def __init__(self, url: str, pool: Pool) -> None:
        self._planning, self._working = Prompts(url), Prompts(url)
        self._pool = pool
        self._call_state = CallState()
        self._policy = WorkerPolicy(pool.named("ada"))
        self.counts: dict[str, tuple[Counts, Counts]] = {}
        """Of each kind of work those of the Conductor's prompts and of the workers'."""
        self.answers: list[str] = []
        """Of all workers' calls, in the plans' order."""

    async def ask(self, work: str, question: Question, *plans: Workflow) -> Trace:
        """Answer a question by these plans, one for each round."""
        policy = FixedPolicy(self._policy, list(plans))
        conductor = Conductor(policy, PromptSettings(form="structured"))
        runner = Runner(conductor, self._pool, budget=Budget(rounds=len(plans)), call_state=self._call_state)
        trace = await runner.answer(question, seed=question.text)
        assert trace.status == "ok", trace.error
        planning, working = self.counts.setdefault(work, (Counts(), Counts()))
        for round_ in trace.rounds:
            planning.add(round_.plan.messages, round_.plan.spent.usage, self._planning)
            for span in sorted(round_.spans, key=lambda span: span.started_s or 0.0):
                working.add(span.messages, span.usage, self._working)
        self.answers += [span.response or "" for span in trace.spans]
        return trace

    async def run(self) -> None:
        """Ask all."""
        for steps in range(1, 6):
            asked = Question(text=f"First, {QUESTIONS[steps]}")
            await self.ask(f"a plan of {steps} steps", asked, plan(steps))
        for text in QUESTIONS:
            await self.ask("ten questions, 2 steps each", Question(text=text), plan(2))
        history: tuple[Message, ...] = ()
        for text in QUESTIONS[:6]:
            asked = Question(text=f"And now: {text}", history=history)
            trace = await self.ask("conversation of six turns, 2 steps each", asked, plan(2))
            turn = Message(role="user", content=asked.text), Message(role="assistant", content=trace.answer)
            history = (*history, *turn)
        rounds = [plan(3, begins) for begins in ("", "Once more: ", "For the last time: ")]
        await self.ask("three rounds of 3 steps", Question(text=f"At last, {QUESTIONS[6]}"), *rounds)


def rows(counts: dict[str, tuple[Counts, Counts]]) -> Iterator[Row]:
    """What was read, beside what had to be."""
    for work, parts in counts.items():
        for who, part in zip(("Conductor", "workers"), parts, strict=True):
            peer = f"had to be read of {part.sent:,}; price {part.share_of_price:.2f}"
            yield Row(
                f"{work}: {who}",
                part.read,
                "tokens",
                peer,
                round(part.needed),
                "ratio ≤ 1.1",
                higher_is_better=False,
            )


async def ask_all(url: str, kept: bool) -> Experiment:
    """Ask all questions of workers at this server.

    Args:
        kept: whether the server uses what it read before.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "team.toml")
        workers = (
            WORKER.format(name=name, url=url, profile=text, kept=str(kept).lower())
            for name, text in PROFILES.items()
        )
        await asyncio.to_thread(path.write_text, "".join(workers))
        pool = open_pool(str(path))
    try:
        experiment = Experiment(url, pool)
        await experiment.run()
    finally:
        await pool.close()
    return experiment


def main(url: str, file: Path | None) -> None:
    """Measure and print."""
    kept, anew = (asyncio.run(ask_all(url, kept)) for kept in (True, False))
    unlike = Row(
        f"greedy answers of {len(anew.answers)} that differ when nothing is kept",
        len(differing(kept.answers, anew.answers)),
        "answers",
        goal="0",
        higher_is_better=False,
    )
    report([*rows(kept.counts), unlike], file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    main(given.url, given.json)
