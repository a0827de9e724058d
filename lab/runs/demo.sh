#!/usr/bin/env bash
# The main job in ten minutes: train the shipped start to lead small language models, evaluate it beside baselines on
# held-out questions, write the report, and answer one question. The models answer in this process.
#   SEED=1 RUN=runs/demo-1 lab/runs/demo.sh     another seed
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/.venv/bin:$PATH"
RUN=${RUN:-runs/demo}
SEED=${SEED:-0}
began=$SECONDS

podium train --config lab/configs/demo.toml --run "$RUN" "seed=$SEED"
trained=$SECONDS
podium eval --run "$RUN" --untrained world-warmstart --split validation --questions 200
evaluated=$SECONDS
podium ask --conductor "$RUN/policy" --pool orchestra --no-store "Where was the mayor of Halonmouth born?"
echo
echo "Training took $((trained - began)) s, evaluation and report $((evaluated - trained)) s. The report: $RUN/report.html"
