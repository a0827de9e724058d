"""The update: what must not change it, and that TRL's is the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from podium.train.objective import LOSSES, clipped_surrogate, mean_over_tokens
from podium.train.runtime import named_generator
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import TrainingRow, micro_batches
from podium.train.shared_prefix.checkpoints import read_model, stored_tensors
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import accumulate, adamw, completion_logprobs, update
from tiny_run import SHAPE, make_group, write_start

Group = list[TrainingRow]
MAX_TOKENS = 9


@pytest.fixture
def model() -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(named_generator("tests/grpo"), deviation=0.2)
    return made


def group(name: str, *, rows: int = 4, advantages: tuple[float | None, ...] | None = None) -> Group:
    rng = Random(f"group/{name}")
    drawn = tuple(rng.gauss(0, 1) for _ in range(rows))
    return make_group(
        prompt=tuple(rng.randrange(3, 23) for _ in range(rng.randint(3, 8))),
        completions=tuple(
            tuple(rng.randrange(2, 23) for _ in range(rng.randint(1, MAX_TOKENS))) for _ in range(rows)
        ),
        advantages=drawn if advantages is None else advantages,
    )


def gradient(
    model: PolicyModel, groups: list[Group], loss_type: str = "bnpo"
) -> tuple[float | None, dict[str, torch.Tensor]]:
    model.zero_grad()
    settings = GRPOSettings(loss_type=loss_type, max_tokens=MAX_TOKENS)
    loss = accumulate(model, groups, settings)
    return loss, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=1e-6, rtol=1e-4, msg=name)


def test_padding_does_not_change_logits_of_completions(model: PolicyModel) -> None:
    """A micro-batch with room to spare: more rows, and longer rows than any that is real."""
    (tight,) = micro_batches([group("a")], mean_over_tokens, max_tokens=MAX_TOKENS)
    T = tight.grid_GT.shape[1]
    more = torch.nn.functional.pad(tight.grid_GT, (0, 5, 0, 2), value=1)
    cells = tight.cells_N.div(T, rounding_mode="floor") * (T + 5) + tight.cells_N % T
    prompt = model.prompt(tight.prompt_1P, torch.tensor([tight.prompt_1P.shape[1]]))
    torch.testing.assert_close(
        model.completions(tight.inputs_N, cells, more, prompt),
        model.completions(tight.inputs_N, tight.cells_N, tight.grid_GT, prompt),
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("loss_type", LOSSES)
def test_a_group_of_equal_rewards_has_no_gradient(model: PolicyModel, loss_type: str) -> None:
    """Left out, it gives the gradient of the batch in which it is computed."""
    equal, alive = group("equal", advantages=(0.0,) * 4), group("alive")
    # 0 within the precision of a float, so that the group is computed and not left out.
    barely = group("equal", advantages=(1e-30,) * 4)
    _, left_out = gradient(model, [alive, equal], loss_type)
    _, computed = gradient(model, [alive, barely], loss_type)
    assert_same(left_out, computed)
    loss, none = gradient(model, [equal, equal], loss_type)
    assert loss is None
    assert not none


def test_batch_of_zero_variance_groups_does_not_change_the_policy(model: PolicyModel) -> None:
    optimizer = adamw(model)
    settings = GRPOSettings(max_tokens=MAX_TOKENS)
    update(model, optimizer, [group("a")], settings, rate=1e-2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert update(model, optimizer, [group("b", advantages=(0.0,) * 4)], settings, rate=1e-2) == (0, 0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("loss_type", LOSSES)
def test_rollout_with_failed_workers_does_not_change_the_gradient(model: PolicyModel, loss_type: str) -> None:
    first, second, *others = group("a")
    failed = [first, replace(second, advantage=None), *others]
    without = [first, *others]
    assert_same(gradient(model, [failed], loss_type)[1], gradient(model, [without], loss_type)[1])


def test_probability_ratio_has_no_gradient_beyond_the_clip() -> None:
    old = torch.zeros(4)
    logprobs = torch.tensor([0.3, -0.3, 0.3, -0.3], requires_grad=True)
    advantages = torch.tensor([1.0, 1.0, -1.0, -1.0])
    clipped_surrogate(logprobs, advantages, old_logprobs_N=old, clip=0.2).backward()
    assert [value != 0 for value in logprobs.grad.tolist()] == [False, True, True, False]


def test_the_clip_binds_when_the_policy_has_moved_since_it_sampled(model: PolicyModel) -> None:
    """Equal completions of either sign are one row, and each is clipped on its own side."""
    better = TrainingRow((1, 4, 9), (5, 6, 2), 1.0)
    (batch,) = micro_batches([[better]], mean_over_tokens, max_tokens=MAX_TOKENS)
    now = completion_logprobs(model, batch).tolist()
    rose, fell = tuple(value - 0.5 for value in now), tuple(value + 0.5 for value in now)
    worse = replace(better, advantage=-1.0)
    moving = [
        any(bool(grad.any()) for grad in gradient(model, [[row]])[1].values())
        for row in (
            replace(better, old_logprobs=rose),
            replace(better, old_logprobs=fell),
            replace(worse, old_logprobs=rose),
            replace(worse, old_logprobs=fell),
        )
    ]
    assert moving == [False, True, True, False]
    # Of the two completions the better one is clipped; what is left is half of what the worse one alone has.
    both = [replace(row, old_logprobs=rose) for row in (better, worse)]
    _, together = gradient(model, [both])
    _, alone = gradient(model, [both[1:]])
    assert_same(together, {name: grad / 2 for name, grad in alone.items()})


def test_token_weights() -> None:
    assert LOSSES["bnpo"]([3, 1], max_tokens=8) == (0.25, 0.25)
    assert LOSSES["grpo"]([3, 1], max_tokens=8) == pytest.approx((1 / 6, 1 / 2))
    assert LOSSES["dr_grpo"]([3, 1], max_tokens=8) == (1 / 16, 1 / 16)


@pytest.fixture(scope="module")
def trl_parts(tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """TRL's own trainer, built on the same checkpoint for each loss type when asked."""
    root = tmp_path_factory.mktemp("trl")
    start = write_start(root / "start")

    def trainer(loss_type: str) -> GRPOTrainer:
        return GRPOTrainer(
            model=str(start.path),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=GRPOConfig(
                output_dir=str(root / "out"),
                loss_type=loss_type,
                beta=0.0,
                epsilon=0.2,
                num_generations=4,
                per_device_train_batch_size=8,
                max_completion_length=MAX_TOKENS,
                activation_checkpointing=False,
                use_cpu=True,
                bf16=False,
                report_to=[],
                model_init_kwargs={"dtype": "float32"},
            ),
            train_dataset=Dataset.from_dict({"prompt": ["Plan:"] * 8}),
            processing_class=AutoTokenizer.from_pretrained(start.path),
        )

    return start, trainer


@pytest.mark.parametrize(("beta", "moved"), [(0.0, False), (0.1, False), (0.0, True), (0.1, True)])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_the_update_equals_trls(trl_parts: tuple, loss_type: str, beta: float, moved: bool) -> None:
    """Also where the policy has moved since it sampled, so that the clip binds for some tokens."""
    start, make = trl_parts
    groups = [group("a"), group("b", advantages=(0.0,) * 4)]
    if moved:
        groups = with_made_up(groups, "old_logprobs")
    if beta:
        groups = with_made_up(groups, "reference_logprobs")
    rows = [row for group in groups for row in group]
    trainer = make(loss_type)
    trainer.beta = beta
    theirs = trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    inputs = trl_inputs(rows)
    if beta:
        inputs["ref_per_token_logps"] = padded([row.reference_logprobs for row in rows])
    if moved:
        inputs["old_per_token_logps"] = padded([row.old_logprobs for row in rows])
    loss = trainer.compute_loss(theirs, inputs)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
    torch.optim.AdamW(theirs.parameters(), lr=1e-2, weight_decay=0.0).step()

    ours = read_model(start)
    settings = GRPOSettings(loss_type=loss_type, max_tokens=MAX_TOKENS, beta=beta)
    our_loss, our_norm = update(ours, adamw(ours), groups, settings, rate=1e-2)
    assert our_loss == pytest.approx(loss.item(), rel=1e-4, abs=1e-6)
    assert our_norm == pytest.approx(float(norm), rel=1e-4)
    expected = theirs.state_dict()
    for name, weight in stored_tensors(ours):
        torch.testing.assert_close(weight, expected[name], atol=1e-4, rtol=1e-3, msg=name)


def with_made_up(groups: list[Group], name: str) -> list[Group]:
    """The groups with made-up log-probabilities in this field."""
    made = []
    for group in groups:
        rng = Random("log-probabilities")
        made.append([replace(row, **{name: tuple(rng.uniform(-4, -2) for _ in row.tokens)}) for row in group])
    return made


def padded(rows: list[tuple[float, ...]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([list(row) + [0.0] * (longest - len(row)) for row in rows])


def trl_inputs(rows: Group) -> dict[str, torch.Tensor]:
    """Prompts padded on the left, completions on the right, as TRL's own generation leaves them."""
    P, T = max(len(row.prompt) for row in rows), max(len(row.tokens) for row in rows)
    prompts, completions = [row.prompt for row in rows], [row.tokens for row in rows]
    return {
        "prompt_ids": torch.tensor([[0] * (P - len(p)) + list(p) for p in prompts]),
        "prompt_mask": torch.tensor([[0] * (P - len(p)) + [1] * len(p) for p in prompts]),
        "completion_ids": torch.tensor([list(c) + [0] * (T - len(c)) for c in completions]),
        "completion_mask": torch.tensor([[1] * len(c) + [0] * (T - len(c)) for c in completions]),
        "advantages": torch.tensor([row.advantage for row in rows]),
    }
