"""What this machine's GPU does for training: tokens a second of generating and updating, memory, share of the peak.

    python benchmarks/gpu.py [--shapes 0.5B 3B 7B] [--batch 64] [--prompt 1024] [--completion 1024]

Weights are random, in the shapes of Qwen2.5, in bfloat16; all of them are trained, or a LoRA of rank 32. Generation is
transformers', which vLLM beats by far; the update is one forward and backward pass with gradient checkpointing and one
step of AdamW. Beside the measured figures stand those of the formulas (docs/scaling.md). Without a GPU nothing is
measured.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen2Config

from podium.train.run_estimate import (
    GIB,
    GPU,
    SHAPES,
    GPUEstimate,
    TrainingSize,
    find_gpu,
)
from podium.train.shape import ModelShape

LORA_RANK = 32
BATCH, COMPLETION = 256, 1024
"""An iteration of the paper's run, for which seconds are told."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one shape did."""

    generated: float
    """Tokens a second."""
    updated: float
    """Tokens a second, prompts included."""
    flops: float
    """Floating-point operations a second of the update, by the formula."""
    memory_gib: float
    """The most that was allocated."""

    @property
    def generation_s(self) -> float:
        """Seconds for an iteration's completions at this rate."""
        return BATCH * COMPLETION / self.generated

    def update_s(self, prompt: int) -> float:
        """Seconds for an iteration's update at this rate."""
        return BATCH * (prompt + COMPLETION) / self.updated


def make_model(shape: ModelShape, device: torch.device, lora_rank: int | None) -> Any:
    """A model of random weights; whole, or with an adapter that alone is trained."""
    config = Qwen2Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,  # type: ignore[call-arg]  # It is a key of the file, which transformers takes too.
        tie_word_embeddings=shape.tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    with torch.device(device):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    if lora_rank is not None:
        model = get_peft_model(
            model, LoraConfig(r=lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    return model


def measure(training: TrainingSize, device: torch.device) -> Measured:
    """Generate one batch, and update on one micro-batch, each once to warm up and once by the clock."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    model = make_model(training.shape, device, training.lora_rank)
    prompts = torch.randint(1, training.shape.vocab, (training.batch, training.prompt_tokens), device=device)
    generated = _rate(
        lambda tokens: model.generate(
            input_ids=prompts, attention_mask=torch.ones_like(prompts), do_sample=True,
            min_new_tokens=tokens, max_new_tokens=tokens,
        ),
        training.completion_tokens, training.batch, device,
    )  # fmt: skip
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-6)

    def update(length: int) -> None:
        ids = torch.randint(1, training.shape.vocab, (training.micro_batch, length), device=device)
        kept = min(length, training.completion_tokens)
        logits = model(input_ids=ids, logits_to_keep=kept, use_cache=False).logits.float()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, -kept:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    length = training.prompt_tokens + training.completion_tokens
    updated = _rate(update, length, training.micro_batch, device)
    step = replace(training, batch=training.micro_batch)
    return Measured(
        generated=generated,
        updated=updated,
        flops=step.update_flops * updated / (training.micro_batch * length),
        memory_gib=torch.cuda.max_memory_allocated() / GIB if device.type == "cuda" else 0.0,
    )


def _rate(work: Any, tokens: int, sequences: int, device: torch.device) -> float:
    """Tokens a second of `work(tokens)`, after a short turn to warm up."""
    work(min(tokens, 8))
    _wait(device)
    began = time.perf_counter()
    work(tokens)
    _wait(device)
    return tokens * sequences / (time.perf_counter() - began)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def tell(name: str, training: TrainingSize, found: Measured, gpu: GPU | None) -> None:
    """Print one shape's figures, and the formulas' beside them where the card is known."""
    print(
        f"{name:<14}{found.generated:10,.0f} generated/s{found.updated:10,.0f} updated/s"
        f"{found.memory_gib:8.1f} GiB{found.flops / 1e12:7.0f} TFLOP/s"
        + (f" ({found.flops / gpu.tflops / 1e12:.0%} of the peak)" if gpu else "")
    )
    print(
        f"  {BATCH} x {COMPLETION:,}: {found.generation_s:,.0f} s to generate, "
        f"{found.update_s(training.prompt_tokens):,.0f} s to update"
    )
    if gpu is not None:
        whole = GPUEstimate(replace(training, batch=BATCH, completion_tokens=COMPLETION), gpu)
        print(
            f"  by formulas: {whole.generation_s:,.0f} s, {whole.update_s:,.0f} s, "
            f"{GPUEstimate(training, gpu).memory.peak / GIB:,.1f} GiB"
        )


def main(given: argparse.Namespace) -> None:
    if not torch.cuda.is_available():
        print("There is no GPU here, so nothing is measured; docs/scaling.md has the formulas' figures.")
        return
    device, name = torch.device("cuda"), torch.cuda.get_device_name()
    gpu = find_gpu(name)
    print(f"{name}, {torch.cuda.get_device_properties(0).total_memory / GIB:.0f} GiB, {date.today()}")
    shapes = {known.split("-")[1]: shape for known, shape in SHAPES.items() if "2.5" in known}
    for size in given.shapes:
        for kind, rank in (("full", None), ("LoRA", LORA_RANK)):
            training = TrainingSize(
                shapes[size], batch=given.batch, questions=given.batch, prompt_tokens=given.prompt,
                completion_tokens=given.completion, micro_batch=given.micro_batch, weight_bytes=2, lora_rank=rank,
            )  # fmt: skip
            try:
                tell(f"{size} {kind}", training, measure(training, device), gpu)
            except torch.cuda.OutOfMemoryError:
                print(f"{size} {kind}: does not fit; try --batch and --micro-batch below {given.batch} "
                      f"and {given.micro_batch}.")  # fmt: skip
            torch.cuda.empty_cache()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", nargs="+", choices=["0.5B", "3B", "7B"], default=["0.5B", "3B", "7B"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=1024)
    parser.add_argument("--completion", type=int, default=1024)
    main(parser.parse_args())
