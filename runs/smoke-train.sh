#!/usr/bin/env bash
# Trains random language models of two layers on a CPU, in about two minutes each, two at a time. Each one is trained on
# traces (SFT), has a dry run, is trained with GRPO over two rounds, is killed and resumed, and is then published, served
# and evaluated. This tests that the steps work together. It says nothing about learning.
#   runs/smoke-train.sh                     all architectures; GRPO trains all weights of two, and adapters (LoRA) of two
#   ARCHITECTURES=qwen2 runs/smoke-train.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
export OMP_NUM_THREADS=1
ARCHITECTURES=${ARCHITECTURES:-qwen2 qwen3 llama gemma2}
export RUN=${RUN:-runs/smoke} TEAM=configs/train/smoke/team.toml

whole_path() {
  set -euo pipefail
  architecture=$1 began=$SECONDS
  trap 'kill ${trainer:-} ${server:-} 2>/dev/null || true' EXIT  # A step that fails leaves nothing running.
  lora=() faster=()
  case $architecture in qwen3 | gemma2) lora=('lora={r = 8}') ;; esac
  case $architecture in gemma2) faster=(sft.lr=1e-2) ;; esac  # It learns a third as fast as the others.
  here="$RUN/$architecture"
  python runs/random_model.py "$here/start" "$architecture"
  smoke=(--config configs/train/smoke.toml)
  podium train --run "$here/sft" "${smoke[@]}" --stage sft \
    "start=$here/start" "sft.examples=$RUN/teacher.sqlite" "${faster[@]}"  # All weights: a random model learns nothing by LoRA.

  train=(podium train --run "$here/grpo" "${smoke[@]}" "start=$here/sft/policy" "${lora[@]}")
  "${train[@]}" --dry-run
  "${train[@]}" &
  trainer=$!
  until [ -d "$here/grpo/checkpoints/checkpoint-1" ] || ! kill -0 "$trainer" 2>/dev/null; do sleep 0.2; done
  kill -9 "$trainer" 2>/dev/null || true
  wait "$trainer" 2>/dev/null || true
  trainer=
  "${train[@]}"
  [ "$(wc -l < "$here/grpo/metrics.jsonl")" = 3 ]

  podium train push "$here/grpo" --to "$here/published"
  podium serve --conductor "$here/published" --pool "$TEAM" --port 0 --store "$here/served.sqlite" > "$here/serve.log" 2>&1 &
  server=$!
  until url=$(grep -om1 'http://[0-9.:]*[0-9]' "$here/serve.log"); do sleep 0.2; kill -0 "$server"; done
  curl -sf "$url/v1/chat/completions" -H 'Content-Type: application/json' \
    -d '{"model": "podium", "messages": [{"role": "user", "content": "What is 12 plus 34?"}]}' > "$here/answer.json"
  kill "$server"
  wait "$server" || true
  server=
  podium eval --run "$here/grpo" --questions 8 eval.tuning=0 > "$here/evaluation.txt"
  echo "$architecture: the whole path took $((SECONDS - began)) s"
}
export -f whole_path

rm -rf "$RUN"
mkdir -p "$RUN"
# The traces to learn from: one worker answers each question in one step. A random model can learn to write this one plan.
python - "$TEAM" "$RUN/teacher.sqlite" << 'END'
import asyncio, sys
from pathlib import Path

from podium.planners.registry import open_baseline
from podium.tasks import open_tasks
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.store import TraceStore


async def main(team: Path, store: Path) -> None:
    pool = open_pool(str(team))
    runner = Runner(open_baseline("single:gus", pool.profiles, seed="0"), pool)
    with TraceStore(store) as traces:
        for task in open_tasks(str(team.with_name("sums.jsonl")), "train", size=200):
            traces.add(await runner.answer(task.question))

asyncio.run(main(*map(Path, sys.argv[1:])))
END

# Two at a time; what each prints is kept in its folder, and shown if it fails.
# shellcheck disable=SC2016
printf '%s\n' $ARCHITECTURES | xargs -P 2 -I{} bash -c 'mkdir -p "$RUN/$1"
  if bash -c "whole_path $1" > "$RUN/$1/log.txt" 2>&1; then tail -n 1 "$RUN/$1/log.txt"
  else tail -n 40 "$RUN/$1/log.txt"; exit 255; fi' _ {}
