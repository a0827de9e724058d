"""A fingerprint of the questions and the workers with which a run began, as digests.

A settings file names a table and a team file, and both can be edited between two starts. `RunFolder.open` stores the
fingerprint, and refuses to go on with other data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

from pydantic import BaseModel, Field

from podium.tasks.task import Task
from podium.types import FrozenModel, Profile
from podium.workers.base import Worker

_ADDRESS_KEYS = ("url", "query", "headers")
"""Keys of a worker's identity that say where its model is served, which may change between two starts."""


class DataFingerprint(FrozenModel):
    """The questions and workers of a run."""

    questions: int
    texts: str
    """Digest of the questions' texts, whatever their order."""
    order: str
    answers: str
    """Digest of the gold answers."""
    graders: str
    workers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The workers by name, in order. Each has its profile without ratings, and digests of its model and settings."""

    @classmethod
    def of(cls, tasks: Iterable[Task], workers: Iterable[Worker] = ()) -> Self:
        """The fingerprint of these questions, in their order, and of these workers."""
        return cls._of(
            [
                (task.question.model_dump(mode="json"), task.gold, grader_settings(task.grader))
                for task in tasks
            ],
            {worker.profile.name: _profile(worker.profile) | _settings(worker) for worker in workers},
        )

    @classmethod
    def of_examples(cls, examples: Iterable[tuple[Any, str]], profiles: Iterable[Profile]) -> Self:
        """The fingerprint of pairs of a prompt and its completion, and of workers that are not called."""
        return cls._of(
            [(prompt, completion, None) for prompt, completion in examples],
            {profile.name: _profile(profile) for profile in profiles},
        )

    @classmethod
    def _of(cls, rows: Sequence[tuple[Any, str, Any]], workers: dict[str, dict[str, Any]]) -> Self:
        texts = [value_digest(text) for text, _, _ in rows]
        by_text = [row for _, row in sorted(zip(texts, rows, strict=True), key=lambda pair: pair[0])]
        return cls(
            questions=len(rows),
            texts=value_digest(sorted(texts)),
            order=value_digest(texts),
            answers=value_digest([answer for _, answer, _ in by_text]),
            graders=value_digest([grader for _, _, grader in by_text]),
            workers=workers,
        )

    def changes(self, now: DataFingerprint) -> list[str]:
        """The differences in words. If one difference implies others, only the first is named: other questions also
        have other answers."""
        changes = []
        if self.texts != now.texts:
            changes.append(f"the questions ({self.questions:,} then, {now.questions:,} now)")
        elif self.answers != now.answers:
            changes.append("the right answers")
        elif self.graders != now.graders:
            changes.append("the graders")
        elif self.order != now.order:
            changes.append("the order of the questions")
        if list(self.workers) != list(now.workers):
            changes.append(f"the workers ({', '.join(self.workers)} then, {', '.join(now.workers)} now)")
            return changes
        for name, before in self.workers.items():
            after = now.workers[name]
            keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
            changes += [f"worker {name!r} ({', '.join(sorted(keys))})"] * bool(keys)
        return changes


def _profile(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(mode="json", exclude={"name", "rating"})


def _settings(worker: Worker) -> dict[str, str]:
    return {
        key: value_digest(value) for key, value in (worker.identity or {}).items() if key not in _ADDRESS_KEYS
    }


def grader_settings(grader: object) -> Any:
    """A grader as JSON: its kind, with its settings or its identity if it has any."""
    name = type(grader).__qualname__
    if isinstance(grader, BaseModel):
        return [name, grader.model_dump(mode="json")]
    identity = getattr(grader, "identity", None)
    return name if identity is None else [name, identity]


def value_digest(value: Any) -> str:
    """16 hexadecimal digits of a value in JSON."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]
