#!/usr/bin/env bash
# The main job in a few minutes: train the shipped warm start on the embedded tasks, evaluate it beside every
# baseline on held-out questions, write the report, and answer one question. Workers are simulated.
#   SEED=1 RUN=runs/demo-1 runs/demo.sh     another seed
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUN=${RUN:-runs/demo}
SEED=${SEED:-0}
began=$SECONDS

podium train --config configs/demo.toml --run "$RUN" "grpo.seed=$SEED"
trained=$SECONDS
podium eval --run "$RUN"
evaluated=$SECONDS
podium ask --conductor "$RUN/policy" --no-store --seed 0 \
  "Let A be what you get if you count the vowels in 'orchard'. Let B be what you get if you read the Roman numeral 'XIV'. Add A and B together."
echo
echo "Training took $((trained - began)) s, evaluation and report $((evaluated - trained)) s. The report: $RUN/report.html"
