"""LiveCodeBench: problems of programming contests, with the compressed tests of the dataset."""

from __future__ import annotations

import asyncio
import base64
import json
import pickletools
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, ClassVar, Literal

from pydantic import Field

from podium.errors import GraderError
from podium.files.tables import Row
from podium.plugin_api.tasks import Grade, Sample
from podium.tasks.graders.code_grader import Code
from podium.tasks.sets.prompts import COMPLETION, PROGRAM
from podium_research.task_sets.code_sets import CodeSet
from podium_research.task_sets.hub import text_column

_RELEASE = r"^(release_)?v[1-6]$|^v[1-6]_v[1-6]$"
MAX_TEST_BYTES = 2**30
"""The most bytes of one question's unpacked private tests; unpacking stops there."""
_QUIET = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})
_TEXTS = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})


class PackedCode(Code):
    """Grades as `Code` does; the gold answer holds the tests as the dataset packs them."""

    def gold_problem(self, gold: str) -> str | None:
        try:
            return super().gold_problem(unpack_tests(gold))
        except ValueError as error:
            return f"its tests cannot be read: {error}"

    async def __call__(self, response: str, gold: str) -> Grade:
        # Some questions have 100 MB of tests; unpacking in a thread keeps the event loop free.
        try:
            tests = await asyncio.to_thread(unpack_tests, gold)
        except ValueError as error:
            raise GraderError(
                f"A program cannot be graded, since its tests cannot be read: {error}."
            ) from None
        return await super().__call__(response, tests)


class LiveCodeBench(CodeSet):
    """LiveCodeBench: problems of programming contests, each with the day it was set.

    Source: `livecodebench/code_generation_lite` on the hub (Jain et al. 2024, arXiv 2403.07974); its licence is given
    only as "cc". Releases v1 to v6 add 400, 111, 101, 101, 167 and 175 questions. As the authors name them, `v6` is the
    sixth release alone, `v4_v6` the fourth to the sixth, `release_v6` the first to the sixth. Splits: test (`v6`) and
    train (`v1`, of which a tenth is validation). An answer to a LeetCode problem is a function, any other a program. It
    must pass all tests, public and private.
    Traps: private tests are a compressed pickle, and loading a pickle can run any code, so it is read without loading.
    Tests have gigabytes in all, so they stay compressed until they are needed. Where papers report "v5" or "v6", they
    often mean a window of days: `release = "release_v6"` with `since` and `until`.
    """

    source: ClassVar[str] = "livecodebench/code_generation_lite"
    licence: ClassVar[str] = "cc"
    set: Literal["livecodebench"] = "livecodebench"
    release: str = Field(default="v6", pattern=_RELEASE)
    """The release of the test split."""
    training: str = Field(default="v1", pattern=_RELEASE)
    """The release of the train split, without questions of `release`."""
    since: date | None = None
    """Test questions were set on this day or later; training questions before it."""
    until: date | None = None
    """Test questions were set on this day or earlier."""
    grading: PackedCode = Field(default_factory=PackedCode)
    """Limits of programs, and whether a weak sandbox is allowed."""

    @property
    def label(self) -> str:
        return f"livecodebench-{self.release}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": _files(self.training), "test": _files(self.release)}

    def _rows(self, split: str) -> Iterator[Row]:
        for row in super()._rows(split):
            if row.error or self._in_window(split, row.values):
                yield row

    def _in_window(self, split: str, values: Mapping[str, Any]) -> bool:
        try:
            day = _day(values)
        except (KeyError, ValueError):
            return True  # so that `record_to_sample` complains
        if split == "train":
            return self.since is None or day < self.since
        return (self.since is None or self.since <= day) and (self.until is None or day <= self.until)

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        question, starter = text_column(values, "question_content"), values["starter_code"]
        gold = {
            "function": _function(text_column(values, "metadata")),
            "public": text_column(values, "public_test_cases"),
            "private": text_column(values, "private_test_cases"),
        }
        return Sample(
            COMPLETION.format(question=question, code=starter)
            if starter
            else PROGRAM.format(question=question),
            json.dumps(gold),
            text_column(values, "question_id"),
            {
                "family": text_column(values, "platform"),
                "difficulty": text_column(values, "difficulty"),
                "date": _day(values).isoformat(),
            },
            content=question,
        )


def unpack_tests(gold: str, most: int = MAX_TEST_BYTES) -> str:
    """Unpack the tests of a question into the form that `Code` takes.

    Raises:
        ValueError: they do not have the dataset's form.
    """
    try:
        packed = json.loads(gold)
        tests = [*json.loads(packed["public"]), *json.loads(_private(packed["private"], most))]
        inputs, outputs = [test["input"] for test in tests], [test["output"] for test in tests]
        if packed["function"] is None:
            return json.dumps({"form": "programs", "inputs": inputs, "outputs": outputs})
        return json.dumps(
            {
                "form": "calls",
                "function": packed["function"],
                "inputs": [[json.loads(line) for line in lines.split("\n")] for lines in inputs],
                "outputs": [json.loads(output) for output in outputs],
            }
        )
    except (AttributeError, KeyError, TypeError, RecursionError):
        raise ValueError("they are no list of inputs and outputs") from None


def _private(packed: str, most: int) -> str:
    """Private tests as JSON; the dataset holds them as JSON, or as a zipped pickle of JSON in base64."""
    if packed.lstrip().startswith("["):
        return packed
    unzip = zlib.decompressobj()
    try:
        pickled = unzip.decompress(base64.b64decode(packed, validate=True), most)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unzip.eof:
        raise ValueError("they are cut off, or too large")
    return _text(pickled)


def _text(pickled: bytes) -> str:
    """The one string of a pickle. It is read without being loaded, since loading a pickle may run any code.

    Raises:
        ValueError: the pickle holds anything else.
    """
    texts = []
    for step, argument, _ in pickletools.genops(pickled):
        if step.name in _TEXTS:
            texts.append(str(argument))
        elif step.name not in _QUIET:
            raise ValueError(f"a pickle of one text has no {step.name}")
    if len(texts) != 1:
        raise ValueError("the pickle does not hold one text")
    return texts[0]


def _files(release: str) -> tuple[str, ...]:
    """The files of a release, by the name that its authors use."""
    numbers = [int(number) for number in re.findall(r"\d", release)]
    first = 1 if release.startswith("release_") else min(numbers)
    return tuple(f"test{number if number > 1 else ''}.jsonl" for number in range(first, max(numbers) + 1))


def _function(metadata: str) -> str | None:
    """The name of the function under test. None if the whole program is tested."""
    fields = json.loads(metadata)
    name = fields.get("func_name") if isinstance(fields, dict) else fields
    if name is not None and not isinstance(name, str):
        raise ValueError("its metadata name no function")
    return name


def _day(values: Mapping[str, Any]) -> date:
    return date.fromisoformat(text_column(values, "contest_date")[:10])
