"""Splits share no question: each stands in the last of its splits, and is read once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PrivateAttr

from podium.tasks.graders.text_graders import Exact
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import LoadedSplit, TaskSetSpec, task_key
from podium.tasks.task import SPLITS, Task
from podium.tasks.task_file import disjoint_splits, later_splits
from podium.types import Question


def tasks(*texts: str) -> LoadedSplit:
    return LoadedSplit(
        tuple(Task(f"{text}/{n}", Question(text=text), "1", Exact()) for n, text in enumerate(texts))
    )


class Texts(TaskSetSpec):
    """A set whose source is texts by split. It notes what is read."""

    set: str = "texts"
    texts: dict[str, tuple[str, ...]]
    _read: list[str] = PrivateAttr(default_factory=list)

    @property
    def source_splits(self) -> tuple[str, ...]:
        return tuple(self.texts)

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        self._read.extend(splits)
        return {split: tasks(*self.texts[split]) for split in splits}


@pytest.mark.parametrize(
    ("sources", "splits"),
    [
        (("train",), ("train", "validation")),
        (("test",), ("test",)),
        (("test", "train"), SPLITS),
        (("validation", "test"), ("validation", "test")),
        (SPLITS, SPLITS),
        ((), ()),
    ],
)
def test_a_source_with_train_alone_gives_a_validation_split_too(sources, splits) -> None:
    assert Texts(texts=dict.fromkeys(sources, ())).splits == splits
    assert [later_splits(split) for split in SPLITS] == [("validation", "test"), ("test",), ()]


def test_each_needed_split_is_read_once_and_others_never() -> None:
    spec = Texts(texts={"train": ("a",), "test": ("b",)})
    disjoint_splits([spec], ("test",))
    assert spec._read == ["test"]
    disjoint_splits([spec], ("train", "validation", "test"))
    assert spec._read == ["test", "train", "test"]


DRESSES = ("{}", " {} ", "{}?", "“{}”", "{}.\n")


@given(
    st.dictionaries(
        st.sampled_from(SPLITS),
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["red fox", "Red FOX", "red-fox", "2 + 2", "2 - 2", "2+2", "x", "y", "z", "w", "v"]
                ),
                st.sampled_from(DRESSES),
            ).map(lambda drawn: drawn[1].format(drawn[0])),
            max_size=12,
        ),
        min_size=1,
    )
)
def test_splits_share_no_question_and_together_lose_none(sources: Mapping[str, list[str]]) -> None:
    spec = Texts(texts=sources)
    splits = spec.splits
    apart = {split: loaded for split, (loaded,) in disjoint_splits([spec], splits).items()}
    questions = {split: {task_key(task) for task in reading.tasks} for split, reading in apart.items()}
    for split in splits:
        for other in splits:
            assert split == other or not questions[split] & questions[other]
    assert set().union(*questions.values()) == {
        question_key(text) for texts in sources.values() for text in texts
    }
    dropped = {s: r.skipped.get("questions that stand in a later split too", 0) for s, r in apart.items()}
    if "validation" in sources:
        for split in sources:
            assert len(apart[split].tasks) + dropped[split] == len(sources[split])
