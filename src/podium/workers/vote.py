"""`vote`: a tool that returns the most common final answer among the responses that it sees.

The tool is deterministic and free. It compares answers as `same_answer` does, so 0.5 and 1/2 are one answer. A subtask
may name weights, as in "Vote with the weights 2, 1, 1.5.": one number for each response, in order. Planners, ratings
and studies also count equal answers by `voted_answer` and `vote_key`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from podium.text.answer import final_answer
from podium.text.same_answer import answer_key, sorted_json
from podium.trace import Reply, VoteCount
from podium.workers import tool
from podium.workers.base import TOOL, AnswerKey, Request, StoppingRule, Worker
from podium.workers.spec import VoteSpec

VOTE = "vote"
"""The tool's name in a pool, by which baselines and policies that read ratings find it."""
NOTHING = tool.no_result("no response that is shown gives an answer")
_NEW_ANSWER = "\n"
"""The key of an answer that no response has given. No other key has a line break."""
_SOME_ANSWER = "Answer: something"
"""A response with an answer that no response has given yet."""
_CACHED_KEYS = 1024
"""More than the responses of one vote, whose keys are needed again after each turn of an early-stopping vote."""
_WEIGHTS = re.compile(r"\bweights:? (\d+(?:\.\d+)?(?:, \d+(?:\.\d+)?)*)")


def winner_is_certain(subtask: str, responses: Sequence[str | None]) -> bool:
    """Whether the leading answer wins even if all responses that are still to come give one rival answer.

    If it does, it wins in any case, since responses that are spread over several answers help each rival less.
    """
    weights = _weights(subtask, len(responses))
    votes = [None if text is None else vote_key(text) for text in responses]
    leader = _winner(votes, weights)
    if leader is None:
        return None not in responses
    rivals = {_NEW_ANSWER, *(vote for vote in votes if vote not in {None, leader})}
    return all(
        _winner(
            [rival if text is None else vote for text, vote in zip(responses, votes, strict=True)],
            weights,
        )
        == leader
        for rival in rivals
    )


def voted_answer(response: str | None) -> str | None:
    """The answer that a response votes for, as written: a whole JSON object or list, else the final answer. None if the
    response has no answer."""
    if response is None or not tool.is_result(response):
        return None
    return final_answer(response) if sorted_json(response) is None else response.strip()


@lru_cache(maxsize=_CACHED_KEYS)
def vote_key(response: str | None) -> str | None:
    """The key of the answer that a response votes for. Two responses with equal keys vote for the same answer. None if
    the response has no answer."""
    answer = voted_answer(response)
    return None if answer is None else answer_key(answer) or None


class VoteWorker(Worker):
    """Counts answers. In a tie, the first answer wins. The reply has the winner in its most common form.

    A response that is a JSON object or list is an answer as a whole. If the caller wants structured answers, the reply
    is only the winning object or list, as it was written.
    """

    traits = replace(TOOL, stopping_rule=winner_is_certain, answer_key=vote_key)

    def __init__(self, name: str = VOTE, spec: VoteSpec | None = None) -> None:
        spec = spec or VoteSpec(name=name, skills=("vote",))
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback

    async def answer(self, request: Request) -> Reply:
        """The winner, in the words of `announce`. If no response gives an answer, a sentence that says so.

        Raises:
            WorkerError: of kind "missing" if no response gives an answer and a step failed whose response the tool
                should see.
        """
        view = request.view
        responses = tool.responses(view)
        read = len(responses) + len(request.missing_responses)
        weights = _weights(view.subtask, read)
        shown = [weight for index, weight in enumerate(weights) if index not in request.missing_responses]
        votes = [vote_key(text) for text in responses]
        winner = _winner(votes, shown)
        if winner is None:
            return tool.no_input_reply(request, NOTHING)
        forms = [
            voted_answer(text) if vote == winner else None
            for text, vote in zip(responses, votes, strict=True)
        ]
        written = _winner(forms, shown) or ""
        structured = request.options.response_format is not None
        counted = VoteCount(agreeing=votes.count(winner), of=len(votes) - votes.count(None))
        text = written if structured else announce(written, counted.agreeing, counted.of)
        return replace(tool.free_reply(text), votes=counted)


def announce(answer: str, agreeing: int, of: int) -> str:
    """The tool's reply for the winner, which `agreeing` of `of` responses give."""
    return f"{agreeing} of {of} responses agree.\n{tool.as_final_answer(answer)}"


def _winner(votes: Iterable[str | None], weights: Iterable[float]) -> str | None:
    """The vote with the most weight. In a tie, the first. None if there are no votes."""
    counted: dict[str, float] = {}
    for vote, weight in zip(votes, weights, strict=False):
        if vote is not None:
            counted[vote] = counted.get(vote, 0.0) + weight
    return max(counted, key=lambda vote: counted[vote], default=None)


def _weights(subtask: str, count: int) -> Sequence[float]:
    """The weights that the subtask names. If it does not name one for each response, each weight is 1."""
    match = _WEIGHTS.search(subtask)
    weights = [float(weight) for weight in match[1].split(", ")] if match else []
    return weights if len(weights) == count else [1.0] * count


def responses_to_get_next(
    stopping_rule: StoppingRule,
    subtask: str,
    responses: Sequence[str | None],
    order: Sequence[int],
    answer_key: AnswerKey = str,
) -> tuple[int, ...]:
    """Indices of the responses to get next. There are none if the result is certain.

    Args:
        responses: what the vote will see. A response is None if it is still to come, and "" if its step failed.
        order: indices of responses, the cheapest first.
        answer_key: as in `WorkerTraits`.
    """
    if stopping_rule(subtask, responses):
        return ()
    waiting = [index for index in order if responses[index] is None]
    next_texts = {answer_key(text): text for text in (_SOME_ANSWER, *responses) if text}.values()
    for count in range(1, len(waiting)):
        turn = waiting[:count]
        for text in next_texts:
            filled = [text if index in turn else response for index, response in enumerate(responses)]
            if stopping_rule(subtask, filled):
                return tuple(turn)
    return tuple(waiting)
