#!/usr/bin/env bash
# A worker that was left out of training is added by its rating alone, and two others are taken away: how a Conductor
# that was trained on nine does over that pool of eight, beside one that was trained on the eight, in the same table.
# Recordings first: runs/recordings.sh
#   [SEED=0] [SPLIT=validation] [COST_SENSITIVITY=0] runs/exchange.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
SEED=${SEED:-0}
SPLIT=${SPLIT:-validation}
COST_SENSITIVITY=${COST_SENSITIVITY:-0}

if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi
for known in nine eight; do
  run=runs/exchange-$known-$SEED
  if [ ! -d "$run/policy" ]; then
    # A policy that its gate does not pass is there all the same.
    podium train --stage warmstart --config configs/taught-recorded.toml --run "$run" "seed=$SEED" \
      "pool=configs/pools/reasoning-gym-easy-$known.toml" \
      "extra_sources=[{tasks=\"runs/recordings/reasoning-gym-hard.parquet\",pool=\"configs/pools/reasoning-gym-hard-$known.toml\"}]" \
      || [ -d "$run/policy" ]
  fi
done
for level in easy hard; do
  repeats=1
  [ "$level" = hard ] || repeats=3
  podium eval --tasks "runs/recordings/reasoning-gym-$level.parquet" --split "$SPLIT" \
    --conductor "runs/exchange-nine-$SEED/policy" --versus "runs/exchange-eight-$SEED/policy" \
    --pool "configs/pools/reasoning-gym-$level-eight.toml" --questions 2000 --repeats "$repeats" --max-steps 6 \
    --cost-sensitivity "$COST_SENSITIVITY" --early-stop --markdown | tee "runs/exchange-nine-$SEED/$SPLIT-$level-eight.md"
done
