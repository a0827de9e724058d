#!/usr/bin/env bash
# The longer run on the fixed pool of simulated specialists: three seeds, two at a time, each on one core, and then
# each seed's policy beside every baseline on held-out questions.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUNS=${RUNS:-runs/embedded-long}
SEEDS=${SEEDS:-0 1 2}
QUESTIONS=${QUESTIONS:-600}

export OMP_NUM_THREADS=1
echo $SEEDS | tr ' ' '\n' | xargs -P 2 -I SEED \
  podium train --config configs/embedded-long.toml --run "$RUNS/seed-SEED" seed=SEED
for seed in $SEEDS; do
  echo
  echo "Seed $seed"
  podium eval --run "$RUNS/seed-$seed" --questions "$QUESTIONS"
done
