#!/usr/bin/env bash
# First contact with published models, from nothing: downloads (sums checked), llama.cpp servers, tests, and the table of
# docs/results/real-models.md. What was answered is kept: the same command goes on.
#   runs/real-models.sh [KEY=VALUE ...]       of the suite, as in questions=10; GSM8K=FILE where no hub is reached
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
place=${PLACE:-$PWD/runs/real-models}
export PODIUM_MODELS=$place/models
"$bin/python" runs/published_models.py fetch "$PODIUM_MODELS"
"$bin/pytest" -n 0 --timeout 1800 tests/real_models
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
urls=()
port=${PORT:-18480}
for name in smol qwen-0.5b qwen-1.5b; do
  "$bin/python" runs/published_models.py serve "$PODIUM_MODELS/$name.gguf" "$port" "$name" 4 16384 2>"$place/$name.log" >&2 &
  pids+=($!)
  curl --silent --fail --retry 120 --retry-delay 1 --retry-all-errors --output /dev/null "http://127.0.0.1:$port/health"
  urls+=("http://127.0.0.1:$port/v1")
  port=$((port + 1))
done
"$bin/python" runs/real_models.py files "$place" "${urls[@]}" ${GSM8K:+--gsm8k "$GSM8K"}
"$bin/podium" eval "$place/suite.toml" "$@" --run "$place/run" --cache "$place/answers.sqlite"
"$bin/python" runs/real_models.py table "$place"
