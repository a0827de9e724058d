import json

import pytest


@pytest.mark.usefixtures("sums")
def test_sets_are_listed_with_their_splits(podium):
    listed = {one["name"]: one for one in json.loads(podium("tasks", "list", "--json").out)}
    assert listed["sums"]["splits"] == ["train", "validation", "test"]
    shown = podium("tasks", "list").out
    assert all(name in shown for name in listed)


@pytest.mark.usefixtures("sums")
def test_samples_are_shown_with_their_answers_and_are_the_same_for_ever(podium):
    shown = podium("tasks", "show", "sums", "--split", "test", "--samples", "3")
    samples = json.loads(podium("tasks", "show", "sums", "--split", "test", "--samples", "3", "--json").out)
    assert len(samples) == 3
    for sample in samples:
        assert sample["id"] in shown.out
        assert sample["question"] in shown.out
        assert f"→ {sample['gold']}" in shown.out
    later = json.loads(
        podium("tasks", "show", "sums", "--split", "test", "--first", "2", "--samples", "1", "--json").out
    )
    assert later == samples[2:]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["summs"], "did you mean 'sums'?"),
        (["sums", "--split", "tests"], "did you mean 'test'?"),
        (["sums", "--samples", "0"], "--samples 0, --first 0: give at least 1 sample"),
    ],
)
@pytest.mark.usefixtures("sums")
def test_unknown_task_set_or_split_is_refused_with_the_nearest_name(podium, tokens, message):
    refused = podium("tasks", "show", *tokens)
    assert refused.status == 2
    assert message in refused.err
