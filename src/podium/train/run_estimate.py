"""Estimates what a run needs: of its workers from a sample of plans, and of a GPU by formulas.

The plans of a policy are not known before its training. So the sample has random valid plans of every length, for some
of the run's tasks. The cost of graders is left out. docs/scaling.md has the formulas. Nothing here measures: `make
bench-gpu` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from types import MappingProxyType

from podium.conductor.checkpoint import Checkpoint
from podium.executor.plan_estimate import PastAnswers, Range, Workload, estimate_plan
from podium.planners.controls import random_workflow
from podium.rollout.pool_sampling import PoolSampler
from podium.scoring import ScoringSettings
from podium.tasks import Task
from podium.train.settings import TrainSettings
from podium.train.shape import ModelShape
from podium.workers.base import costly_workers
from podium.workers.pool import Pool

SAMPLED_PLANS = 300
"""The number of random plans whose price is estimated."""
PEAK_SHARE = 0.35
"""The share of the GPU's peak performance that the update is assumed to reach."""
BANDWIDTH_SHARE = 0.6
"""The share of the memory's bandwidth that generation is assumed to reach."""
PROMPT_TOKENS = 2000
"""The assumed tokens of the longest prompt, if the tasks cannot be opened."""
ADAMW_MOMENTS = 2
"""Numbers that AdamW keeps for each trained parameter."""
GIB = 2**30


@dataclass(frozen=True, slots=True)
class WorkerEstimate:
    """The calls of workers in a run, and what they would cost, from the means over random plans."""

    plans: int
    """Plans of the run: one for each completion, as if all could be read."""
    calls: float
    tokens: Range
    cost_usd: Range
    cost_by_steps: Mapping[int, float]
    """For each number of steps, the likely dollars if all plans had that many steps."""
    iteration_s: float
    """Seconds that the workers of one iteration take."""
    paid: bool
    """Whether any worker costs money. If so, only workers that cost money count. If all are scripted or recorded, all
    count, and nothing is paid."""


def estimate_workers(
    settings: ScoringSettings,
    pool: Pool,
    tasks: Sequence[Task],
    *,
    plans: int,
    batch: int,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> WorkerEstimate:
    """Estimate what so many plans for these tasks need. The same arguments give the same figures.

    Args:
        plans: the plans of the whole run.
        batch: the plans of an iteration.
        past: earlier answers by the worker's name. For other workers the length of a response is assumed.
    """
    random = Random(f"estimate/{settings.seed}")
    source = PoolSampler(pool, settings.pool_sampling)
    real = {worker.profile.name for worker in costly_workers(pool)}
    sample, dollars = [], defaultdict[int, list[float]](list)
    for number in range(SAMPLED_PLANS):
        task = random.choice(tasks)
        drawn = source.draw(f"estimate/{number}")
        workflow = random_workflow(
            random, workers=len(drawn), max_steps=settings.max_steps, access=settings.prompt.access
        )
        steps = estimate_plan(workflow, drawn, task.question, past=past).steps
        counted = tuple(step for step in steps if not real or step.worker in real)
        sample.append(counted)
        # Steps that no other step needs are written but not run.
        dollars[len(workflow.steps)].append(sum(step.cost_usd.likely for step in counted))
    workload = Workload.of(sample, pool)
    return WorkerEstimate(
        plans=plans,
        calls=workload.calls * plans,
        tokens=workload.tokens.times(plans),
        cost_usd=workload.cost_usd.times(plans),
        cost_by_steps={steps: fmean(costs) * plans for steps, costs in sorted(dollars.items())},
        iteration_s=workload.seconds(batch),
        paid=bool(real),
    )


SHAPES: Mapping[str, ModelShape] = MappingProxyType(
    {
        "Qwen/Qwen2.5-0.5B-Instruct": ModelShape(151_936, 896, 24, 14, 2, 64, 4_864, tied=True),
        "Qwen/Qwen2.5-3B-Instruct": ModelShape(151_936, 2_048, 36, 16, 2, 128, 11_008, tied=True),
        "Qwen/Qwen3-4B-Instruct-2507": ModelShape(151_936, 2_560, 36, 32, 8, 128, 9_728, tied=True),
        "Qwen/Qwen2.5-7B-Instruct": ModelShape(152_064, 3_584, 28, 28, 4, 128, 18_944, tied=False),
    }
)
"""The shapes of the models that the recipes start from, so that a run can be planned before its model is fetched."""


@dataclass(frozen=True, slots=True)
class GPU:
    """The maker's figures for a GPU."""

    name: str
    memory_gib: float
    tflops: float
    """Peak teraflops of dense products in bfloat16."""
    bandwidth: float
    """Bandwidth of the memory in terabytes per second."""


GPUS = (
    GPU("RTX 4090", 24, 165, 1.01),
    GPU("A100", 80, 312, 2.04),
    GPU("H100", 80, 989, 3.35),
    GPU("H200", 141, 989, 4.8),
)
ASSUMED_GPU = "H100"
"""The GPU of the estimate if this machine has none of `GPUS`."""


def find_gpu(name: str) -> GPU | None:
    """The GPU of `GPUS` whose name is in the name that the driver reports. None if there is none."""
    return next((gpu for gpu in GPUS if gpu.name in name), None)


@dataclass(frozen=True, slots=True)
class TrainingSize:
    """The figures of a configuration that the formulas use."""

    shape: ModelShape
    batch: int
    """Completions of an iteration."""
    questions: int
    prompt_tokens: int
    completion_tokens: int
    micro_batch: int
    passes: int = 1
    weight_bytes: float = 4
    """Bytes of a stored parameter: 4 in float32, 2 in bfloat16, about 0.5 in 4 bits."""
    half: bool = True
    """Whether the run computes in 16 bits: bfloat16 or float16."""
    checkpointing: bool = True
    lora_rank: int | None = None
    reference: bool = False
    """Whether the start model computes log-probabilities too, for the KL divergence."""
    vllm: bool = False
    vllm_share: float = 0.0
    """The share of each training GPU's memory that a colocated vLLM takes. 0 if vLLM is not used or runs in a separate
    server."""
    vllm_sleeps: bool = False
    """Whether vLLM frees its memory during the update."""

    @classmethod
    def of(cls, settings: TrainSettings, shape: ModelShape, prompt_tokens: int) -> TrainingSize:
        """The figures of a run whose longest prompt has this many tokens. Completions count with their greatest
        length."""
        grpo, trl = settings.grpo, settings.trl
        dtype = str((trl.get("model_init_kwargs") or {}).get("dtype", "float32"))
        weight_bytes = 4.0 if dtype == "float32" else 2.0
        if quantization := settings.quantization:
            weight_bytes = 0.5 if quantization.get("load_in_4bit") else 1.0
        vllm = bool(trl.get("use_vllm"))
        colocated = vllm and trl.get("vllm_mode", "colocate") == "colocate"
        return cls(
            shape,
            batch=settings.batch,
            questions=grpo.questions * settings.rounds,
            prompt_tokens=prompt_tokens,
            completion_tokens=grpo.max_tokens,
            micro_batch=grpo.micro_batch,
            passes=grpo.num_iterations,
            weight_bytes=weight_bytes,
            half=settings.dtype == "bf16"
            or bool(trl.get("bf16") or trl.get("fp16"))
            or dtype in ("bfloat16", "float16"),
            checkpointing=bool(trl.get("gradient_checkpointing", True)),
            lora_rank=None if settings.lora is None else int(settings.lora.get("r", 8)),
            reference=grpo.beta > 0,
            vllm=vllm,
            vllm_share=float(trl.get("vllm_gpu_memory_utilization", 0.3)) if colocated else 0.0,
            vllm_sleeps=bool(trl.get("vllm_enable_sleep_mode")),
        )

    @property
    def trained_parameters(self) -> int:
        """Parameters that the optimiser changes."""
        return self.shape.parameters if self.lora_rank is None else self.shape.lora_parameters(self.lora_rank)

    @property
    def compute_bytes(self) -> int:
        """The bytes of one number in computations."""
        return 2 if self.half else 4

    @property
    def update_flops(self) -> float:
        """Operations of the updates of one iteration.

        For each token, a parameter takes 2 operations forwards, 2 backwards, and 2 for its own gradient. Checkpointing
        computes forwards twice. A LoRA leaves out the gradients of the frozen weights.
        """
        per_parameter = 4 + 2 * (self.lora_rank is None) + 2 * self.checkpointing
        tokens = self.batch * (self.prompt_tokens + self.completion_tokens)
        return float(
            (per_parameter * self.passes + 2 * self.reference) * self.shape.matmul_parameters * tokens
        )


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The bytes on one GPU, part by part."""

    weights: float
    gradients: float
    moments: float
    compute_copy: float
    """A second copy of the weights in 16 bits, if they are stored in float32."""
    activations: float
    logits: float
    generation: float
    """The keys and values of the completions that are being written. With vLLM, its share of the memory, including its
    own weights."""
    keeps_generation: bool
    """Whether generation keeps its memory while the update is computed."""

    @property
    def update(self) -> float:
        """The bytes that only the update needs."""
        return self.gradients + self.compute_copy + self.activations + self.logits

    @property
    def peak(self) -> float:
        """The greatest sum of parts that are in memory at the same time."""
        persistent = self.weights + self.moments
        return persistent + (
            self.update + self.generation if self.keeps_generation else max(self.update, self.generation)
        )


@dataclass(frozen=True, slots=True)
class GPUEstimate:
    """Memory and time of a run on so many GPUs of one kind."""

    training: TrainingSize
    gpu: GPU
    ranks: int = 1
    """The number of GPUs. FSDP and ZeRO-3 divide weights, gradients and moments among them."""
    seen: bool = False
    """Whether this machine has that GPU. Otherwise the GPU is an assumption."""

    @property
    def memory(self) -> MemoryEstimate:
        """The bytes on each GPU."""
        training, shape = self.training, self.training.shape
        stored, compute = training.weight_bytes, training.compute_bytes
        adapter = 0 if training.lora_rank is None else training.trained_parameters
        trained_bytes = 4.0 if adapter else stored
        sequence = training.prompt_tokens + training.completion_tokens
        tokens = training.micro_batch * sequence
        layer = tokens * (8 * shape.hidden + 3 * shape.inner) * compute
        inputs = tokens * shape.hidden * shape.layers * compute
        if training.vllm:
            generation = training.vllm_share * self.gpu.memory_gib * GIB
        else:
            generation = training.batch / self.ranks * sequence * shape.kv_values * compute
        return MemoryEstimate(
            weights=(shape.parameters * stored + adapter * 4) / self.ranks,
            gradients=training.trained_parameters * trained_bytes / self.ranks,
            moments=ADAMW_MOMENTS * training.trained_parameters * trained_bytes / self.ranks,
            compute_copy=shape.parameters * 2 / self.ranks if training.half and stored == 4 else 0.0,
            activations=inputs + layer if training.checkpointing else layer * shape.layers,
            # The logits and their gradients are in float32. TRL computes them only for the completion.
            logits=training.micro_batch * training.completion_tokens * shape.vocab * 8,
            generation=generation,
            keeps_generation=training.vllm and not training.vllm_sleeps,
        )

    @property
    def update_s(self) -> float:
        """Seconds of the updates of one iteration."""
        return self.training.update_flops / (self.ranks * self.gpu.tflops * 1e12 * PEAK_SHARE)

    @property
    def generation_s(self) -> float:
        """Seconds in which one iteration's completions are written, each with its greatest length.

        Each token reads the weights once for all sequences, and the keys and values of each sequence. vLLM reads a
        group's prompt once and keeps one cache for it. transformers reads the prompt once for each completion. Both
        read the cache for each completion.
        """
        training, shape = self.training, self.training.shape
        per_rank = training.batch / self.ranks
        prompts = training.questions / self.ranks if training.vllm else per_rank
        prefill_flops = 2 * shape.matmul_parameters * prompts * training.prompt_tokens
        kept_bytes = 2 if training.vllm else max(training.weight_bytes, 2)
        mean_length = training.prompt_tokens + training.completion_tokens / 2
        cache = per_rank * mean_length * shape.kv_values * training.compute_bytes
        step_s = (shape.matmul_parameters * kept_bytes + cache) / (
            self.gpu.bandwidth * 1e12 * BANDWIDTH_SHARE
        )
        return prefill_flops / (self.gpu.tflops * 1e12 * PEAK_SHARE) + training.completion_tokens * step_s

    def run_hours(self, iterations: int, workers_s: float = 0.0) -> float:
        """Hours of the whole run, if workers begin when the last plan is written, and take so many seconds."""
        return iterations * (self.generation_s + self.update_s + workers_s) / 3600


def estimate_gpu(
    settings: TrainSettings, start: Checkpoint | None, longest_prompt: int, ranks: int
) -> GPUEstimate | None:
    """What a run needs of this machine's GPUs, or of an assumed kind. None if the model's sizes are not known.

    Args:
        start: the checkpoint that the run starts from. If it is None, only models of `SHAPES` are known.
        longest_prompt: in tokens. 0 if it is not known.
    """
    import torch  # noqa: PLC0415 - the formulas need none

    shape = SHAPES.get(settings.start) if start is None else ModelShape.of_dense_decoder(start.config)
    if shape is None:
        return None
    seen = find_gpu(torch.cuda.get_device_name()) if torch.cuda.is_available() else None
    gpu = seen or next(gpu for gpu in GPUS if gpu.name == ASSUMED_GPU)
    return GPUEstimate(
        TrainingSize.of(settings, shape, longest_prompt or PROMPT_TOKENS), gpu, ranks, seen is not None
    )
