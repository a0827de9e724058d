#!/usr/bin/env bash
# A worker that was left out of training is added by its rating alone, and two others are taken away: how a Conductor
# that was trained on nine does over that pool of eight, beside one that was trained on the eight.
# Recordings first: runs/recordings.sh
#   [SEED=0] [SPLIT=validation] runs/exchange.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
SEED=${SEED:-0}
SPLIT=${SPLIT:-validation}

if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi
for known in nine eight; do
  run=runs/exchange-$known-$SEED
  if [ ! -d "$run/policy" ]; then
    podium train --stage warmstart --config configs/taught-recorded.toml --run "$run" "seed=$SEED" \
      "pool=configs/pools/reasoning-gym-easy-$known.toml" \
      "also=[{tasks=\"runs/recordings/reasoning-gym-hard.parquet\",pool=\"configs/pools/reasoning-gym-hard-$known.toml\"}]" \
      || [ -d "$run/policy" ]
  fi
  for level in easy hard; do
    podium eval --tasks "runs/recordings/reasoning-gym-$level.parquet" --conductor "$run/policy" --split "$SPLIT" \
      --pool "configs/pools/reasoning-gym-$level-eight.toml" --questions 2000 --max-steps 6 --thrift 0 --markdown \
      | tee "$run/$SPLIT-$level-eight.md"
  done
done
