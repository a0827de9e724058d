"""`specialist`: a simulated model that solves embedded questions, and errs as language models do.

It sees only its messages. It works on what the subtask names, and takes over results that it is shown, also wrong ones
unless it notices. It succeeds in each hop with a chance that grows with its ability in the hop's skill and with the
clarity of the subtask. Part of that chance is fixed for each question, so a retry helps less than another worker.
It exists for training and tests: no figure obtained with it says anything about real models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from podium.lab import VALUE_TYPES, Problem, chance, read_problem
from podium.lab.intent import Intent, read_intent
from podium.types import Limits, Profile, Usage, estimate_tokens
from podium.workers.base import Reply, Request
from podium.workers.view import View

_PART = re.compile(r"^Part (\d+): (.+?)( \(not sure\))?$", re.MULTILINE)
_ANSWER = re.compile(r"^Answer: (.+)$", re.MULTILINE)

FIXED_SHARE = 0.6
"""Share of calls whose luck is fixed by worker, question and hop, and so is the same in every repeat."""
BREADTH_TAX = 0.06
"""Share of ability lost for each further hop that one call has to do."""
VAGUE_TAX = 0.03
"""Share of ability lost when the subtask names a part by its number and not by its words."""
NOTICE = 0.25
"""Chance, times ability, to notice a wrong result that it is shown, if the subtask does not request a check."""
CHECK_NOTICE = 0.8
"""The same if the subtask requests a check."""
CONFIDENT = 0.6
"""From this ability on a worker is confident of its result, and recomputes results that others were not sure of."""
CHECK_BREAK = 0.25
"""Chance, times lack of ability, that a check turns a right result into a wrong one."""
THINKING_TOKENS = 120
"""Output tokens besides the response: for each hop that it works on, and for a call that works on none."""


class Specialist:
    """A worker with a chance of success for each skill."""

    identity = None

    def __init__(
        self,
        profile: Profile,
        ability: Mapping[str, float],
        *,
        seconds: float = 1.0,
        limits: Limits = Limits(),
        fallback: str | None = None,
    ) -> None:
        self.profile = profile
        self.ability = MappingProxyType(dict(ability))
        """Skill -> chance in [0, 1] to do one clearly named hop; a skill not named: 0."""
        self.seconds = seconds
        """Reported latency of a call that does one hop; it never sleeps."""
        self.limits = limits
        self.fallback = fallback

    async def answer(self, request: Request) -> Reply:
        """Work on the subtask. Never raises: "I do not know" is an answer too."""
        view = request.view
        problem = read_problem(view.question)
        if problem is None:
            text, worked = "I do not know how to work this out.", 0
        else:
            attempt = _Attempt(self, problem, request.seed)
            text = attempt.respond(view, read_intent(view.subtask, view.question))
            worked = attempt.worked
        usage = Usage(
            input_tokens=sum(estimate_tokens(message.content) for message in request.messages),
            output_tokens=estimate_tokens(text) + THINKING_TOKENS * max(worked, 1),
        )
        return Reply(text, usage, latency_s=self.seconds * (0.25 + 0.75 * worked))

    async def close(self) -> None:
        """Nothing to close."""


class _Attempt:
    """One call: the worker's result for each hop."""

    def __init__(self, worker: Specialist, problem: Problem, seed: str) -> None:
        self._worker = worker
        self._problem = problem
        self._seed = seed
        self._believed: dict[int, str] = {}
        self._doubted: set[int] = set()
        """Hops whose result the worker reports as not sure."""
        self._shown_with_doubt: frozenset[int] = frozenset()
        """Hops whose shown result was reported as not sure."""
        self.worked = 0
        """Hops that it worked on."""

    def respond(self, view: View, intent: Intent) -> str:
        """The response to a view."""
        responses = [shown.response for shown in view.earlier]
        if view.previous is not None:
            responses.insert(0, view.previous)
        if intent.action == "compare":
            return self._compare(responses)
        claims, self._shown_with_doubt = _claims(responses, len(self._problem.hops))
        if intent.action == "check":
            if not claims:
                return "There is no work to check."
            self._check(claims)
            return self._report(sorted(self._believed))
        wanted = self._wanted(intent, claims)
        self._do(wanted, claims, intent)
        return self._report(sorted(self._believed))

    def _wanted(self, intent: Intent, claims: Mapping[int, str]) -> tuple[int, ...]:
        hops = range(len(self._problem.hops))
        if intent.action == "parts":
            return intent.parts
        missing = [i for i in hops if i not in claims]
        if intent.action == "next":
            return tuple(missing[:1]) or (len(hops) - 1,)
        return tuple(missing) or tuple(hops)[-1:]

    def _do(self, wanted: Sequence[int], claims: Mapping[int, str], intent: Intent) -> None:
        """Work on the wanted hops, and first on the hops that they need and that are not shown."""
        needed: set[int] = set()
        for position in wanted:
            self._need(position, claims, needed)
        focus = 1 - BREADTH_TAX * max(len(needed) - 1, 0)
        if intent.action != "parts" or not intent.quoted:
            focus -= VAGUE_TAX
        changed: set[int] = set()
        for position in range(len(self._problem.hops)):
            if position in claims:
                # A subtask that names a part whose result is shown makes the worker check that result.
                named = intent.action == "parts" and position in wanted
                self._take(position, claims[position], changed, CHECK_NOTICE if named else NOTICE)
            elif position in needed:
                self._work(position, focus)

    def _need(self, position: int, claims: Mapping[int, str], needed: set[int]) -> None:
        if position in needed or position in claims:
            return
        needed.add(position)
        for source in self._problem.hops[position].sources:
            self._need(source, claims, needed)

    def _take(self, position: int, claim: str, changed: set[int], notice: float) -> None:
        """Take over a shown result, also a wrong one unless the worker notices."""
        expected = self._expected(position)
        stale = any(source in changed for source in self._problem.hops[position].sources)
        noticed = expected != claim and self._luck("notice", position) < notice * self._ability(position)
        if expected is not None and (stale or noticed or self._knows_better(position)):
            self._work(position, 1.0)
        else:
            self._keep(position, claim)
        if self._believed[position] != claim:
            changed.add(position)

    def _check(self, claims: Mapping[int, str]) -> None:
        changed: set[int] = set()
        for position in sorted(claims):
            self.worked += 1
            claim, ability = claims[position], self._ability(position)
            expected = self._expected(position)
            if expected is None:
                self._keep(position, claim)
                continue
            stale = any(source in changed for source in self._problem.hops[position].sources)
            if expected != claim:
                noticed = self._luck("check", position) < CHECK_NOTICE * ability
                redo = stale or noticed or self._knows_better(position)
            else:
                redo = False
                if self._luck("check", position) < CHECK_BREAK * (1 - ability):
                    self._believed[position] = self._slip(position, expected)
            if redo:
                self._work(position, 1.0, again=True)
            elif position not in self._believed:
                self._keep(position, claim)
            if self._believed[position] != claim:
                changed.add(position)

    def _compare(self, responses: Sequence[str]) -> str:
        """The answer that most responses give; with some luck the right one, if any response gives it."""
        answers = [found[-1] for found in map(_ANSWER.findall, responses) if found]
        if not answers:
            return "There are no answers to compare."
        self.worked = 1
        mean = sum(map(self._ability, range(len(self._problem.hops)))) / len(self._problem.hops)
        if self._problem.answer in answers and self._luck("compare", -1) < 0.7 * mean:
            return f"Answer: {self._problem.answer}"
        best = max(answers, key=lambda answer: (answers.count(answer), -answers.index(answer)))
        return f"Answer: {best}"

    def _work(self, position: int, focus: float, *, again: bool = False) -> None:
        """Compute one hop from the results so far: rightly, or with a plausible error."""
        self.worked += not again
        expected = self._expected(position)
        success = self._luck("work", position) < self._ability(position) * focus
        if expected is None:  # the inputs make no sense: make something up
            expected, success = self._problem.truths[position], False
        self._believed[position] = expected if success else self._slip(position, expected)
        if not self._confident(position):
            self._doubted.add(position)

    def _keep(self, position: int, claim: str) -> None:
        """Take over a result, with the doubt that was reported with it."""
        self._believed[position] = claim
        if position in self._shown_with_doubt:
            self._doubted.add(position)

    def _knows_better(self, position: int) -> bool:
        """Whether a shown result was reported as not sure, and this worker is confident."""
        return position in self._shown_with_doubt and self._confident(position)

    def _confident(self, position: int) -> bool:
        return self._ability(position) >= CONFIDENT

    def _expected(self, position: int) -> str | None:
        """The right result for the inputs as the worker has them; None if they make no sense."""
        results = [self._believed.get(i, "") for i in range(position)]
        try:
            return self._problem.compute(position, results)
        except ValueError:
            return None

    def _slip(self, position: int, expected: str) -> str:
        kind = VALUE_TYPES[self._problem.hops[position].operation.gives]
        rng = Random(f"slip/{self._luck('slip', position)}")
        try:
            return kind.write(kind.slip(rng, kind.read(expected)))
        except (ValueError, IndexError, OverflowError):
            return "unclear"

    def _ability(self, position: int) -> float:
        return self._worker.ability.get(self._problem.hops[position].operation.skill, 0.0)

    def _luck(self, what: str, position: int) -> float:
        """Uniform in [0, 1); for a share of the calls the same in every repeat of this question."""
        name = (what, self._worker.profile.name, self._problem.key, position)
        if chance("fixed", *name, self._seed) < FIXED_SHARE:
            return chance(*name)
        return chance(*name, self._seed)

    def _report(self, positions: Sequence[int]) -> str:
        lines = [
            f"Part {i + 1}: {self._believed[i]}{' (not sure)' if i in self._doubted else ''}"
            for i in positions
        ]
        if positions:
            lines.append(f"Answer: {self._believed[positions[-1]]}")
        return "\n".join(lines)


def _claims(responses: Sequence[str], hops: int) -> tuple[dict[int, str], frozenset[int]]:
    """Shown results by hop, and the hops whose result was reported as not sure.

    Of several results for one hop the last counts; a bare answer is the result of the last hop.
    """
    claims: dict[int, str] = {}
    doubts: set[int] = set()
    for response in responses:
        parts = _PART.findall(response)
        for number, value, doubt in parts:
            position = int(number) - 1
            if 0 <= position < hops:
                claims[position] = value.strip()
                if doubt:
                    doubts.add(position)
                else:
                    doubts.discard(position)
        if not parts:
            for value in _ANSWER.findall(response):
                claims[hops - 1] = value.strip()
                doubts.discard(hops - 1)
    return claims, frozenset(doubts)
