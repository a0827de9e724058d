#!/usr/bin/env bash
# Trains a Conductor on recorded answers to reasoning-gym's questions, and compares it on four pools with every way of
# choosing and voting. Recordings first: runs/recordings.sh
#   [SEED=0] [SPLIT=validation] runs/reasoning-gym.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
SEED=${SEED:-0}
SPLIT=${SPLIT:-validation}
RUN=${RUN:-runs/reasoning-gym-$SEED}

if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi
if [ ! -d "$RUN/policy" ]; then
  podium train --stage warmstart --config configs/taught-recorded.toml --run "$RUN" "seed=$SEED"
fi
for pool in easy hard easy-six hard-six; do
  level=${pool%%-*}
  repeats=1
  if [ "$level" = easy ]; then repeats=3; fi
  podium eval --tasks "runs/recordings/reasoning-gym-$level.parquet" --pool "configs/pools/reasoning-gym-$pool.toml" \
    --conductor "$RUN/policy" --split "$SPLIT" --questions 1000 --repeats "$repeats" --max-steps 6 --markdown \
    | tee "$RUN/$SPLIT-$pool.md"
done
