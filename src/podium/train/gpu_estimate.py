"""Estimates what a run needs of a GPU by formulas: parameters, memory, and seconds of generating and updating.

docs/scaling.md has the formulas. Nothing here measures or loads torch: `make bench-gpu` measures. `worker_estimate`
estimates the cost of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from podium.train.settings import TrainSettings
from podium.train.shape import ModelShape

PEAK_SHARE = 0.35
"""The share of the GPU's peak performance that the update is assumed to reach."""
BANDWIDTH_SHARE = 0.6
"""The share of the memory's bandwidth that generation is assumed to reach."""
MOMENTS = 2
"""Numbers that AdamW keeps for each trained parameter."""
GIB = 2**30


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
    def trained(self) -> int:
        """Parameters that the optimiser changes."""
        return self.shape.parameters if self.lora_rank is None else self.shape.adapter(self.lora_rank)

    @property
    def compute_bytes(self) -> int:
        """The bytes of one number in computations."""
        return 2 if self.half else 4


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


def estimate_memory(training: TrainingSize, *, gpu: GPU, ranks: int = 1) -> MemoryEstimate:
    """The bytes on one of `ranks` GPUs. FSDP and ZeRO-3 divide weights, gradients and moments among the GPUs."""
    shape = training.shape
    stored, compute = training.weight_bytes, training.compute_bytes
    adapter = 0 if training.lora_rank is None else training.trained
    trained_bytes = 4.0 if adapter else stored
    tokens = training.micro_batch * (training.prompt_tokens + training.completion_tokens)
    layer = tokens * (8 * shape.hidden + 3 * shape.inner) * compute
    inputs = tokens * shape.hidden * shape.layers * compute
    if training.vllm:
        generation = training.vllm_share * gpu.memory_gib * GIB
    else:
        sequence = training.prompt_tokens + training.completion_tokens
        generation = training.batch / ranks * sequence * shape.kv_values * compute
    return MemoryEstimate(
        weights=(shape.parameters * stored + adapter * 4) / ranks,
        gradients=training.trained * trained_bytes / ranks,
        moments=MOMENTS * training.trained * trained_bytes / ranks,
        compute_copy=shape.parameters * 2 / ranks if training.half and stored == 4 else 0.0,
        activations=inputs + layer if training.checkpointing else layer * shape.layers,
        # The logits and their gradients are in float32. TRL computes them only for the completion.
        logits=training.micro_batch * training.completion_tokens * shape.vocab * 8,
        generation=generation,
        keeps_generation=training.vllm and not training.vllm_sleeps,
    )


def update_flops(training: TrainingSize) -> float:
    """Operations of the updates of one iteration.

    For each token, a parameter takes 2 operations forwards, 2 backwards, and 2 for its own gradient. Checkpointing
    computes forwards twice. A LoRA leaves out the gradients of the frozen weights.
    """
    per_parameter = (
        2 + 2 + (0 if training.lora_rank is not None else 2) + (2 if training.checkpointing else 0)
    )
    tokens = training.batch * (training.prompt_tokens + training.completion_tokens)
    forwards = 2 if training.reference else 0
    return float((per_parameter * training.passes + forwards) * training.shape.matrices * tokens)


def update_seconds(training: TrainingSize, *, gpu: GPU, ranks: int = 1) -> float:
    """Seconds of the updates of one iteration."""
    return update_flops(training) / (ranks * gpu.tflops * 1e12 * PEAK_SHARE)


def generation_seconds(training: TrainingSize, *, gpu: GPU, ranks: int = 1) -> float:
    """Seconds in which one iteration's completions are written, each with its greatest length.

    Each token reads the weights once for all sequences, and the keys and values of each sequence. vLLM reads a group's
    prompt once and keeps one cache for it. transformers reads the prompt once for each completion. Both read the cache
    for each completion.
    """
    shape = training.shape
    per_rank = training.batch / ranks
    prompts = training.questions / ranks if training.vllm else per_rank
    prefill = 2 * shape.matrices * prompts * training.prompt_tokens / (gpu.tflops * 1e12 * PEAK_SHARE)
    kept_bytes = 2 if training.vllm else max(training.weight_bytes, 2)
    mean_length = training.prompt_tokens + training.completion_tokens / 2
    cache = per_rank * mean_length * shape.kv_values * training.compute_bytes
    step = (shape.matrices * kept_bytes + cache) / (gpu.bandwidth * 1e12 * BANDWIDTH_SHARE)
    return prefill + training.completion_tokens * step


@dataclass(frozen=True, slots=True)
class GPUEstimate:
    """Memory and time of the run on one kind of GPU."""

    gpu: GPU
    seen: bool
    """Whether this machine has that GPU. Otherwise the GPU is an assumption."""
    ranks: int
    parameters: int
    trained: int
    memory: MemoryEstimate
    shared_by_8: MemoryEstimate
    """The memory on each of eight such GPUs, if FSDP or ZeRO-3 distributes the model."""
    generation_s: float
    """Seconds in which the completions of one iteration are generated."""
    update_s: float
    """Seconds of the update of one iteration."""

    @classmethod
    def of(cls, training: TrainingSize, gpu: GPU, *, seen: bool, ranks: int) -> GPUEstimate:
        """What the formulas say of a run on so many GPUs of this kind."""
        return cls(
            gpu=gpu,
            seen=seen,
            ranks=ranks,
            parameters=training.shape.parameters,
            trained=training.trained,
            memory=estimate_memory(training, gpu=gpu, ranks=ranks),
            shared_by_8=estimate_memory(training, gpu=gpu, ranks=8),
            generation_s=generation_seconds(training, gpu=gpu, ranks=ranks),
            update_s=update_seconds(training, gpu=gpu, ranks=ranks),
        )
