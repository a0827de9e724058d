#!/usr/bin/env bash
# Trains a Conductor on recorded answers and compares it, on six pools, with every way of choosing and voting.
# POOLS may also name reasoning-gym-{easy,hard}-calculator and reasoning-gym-{easy,hard}-six-calculator: a live tool is
# among their workers, which no training knew.
# Recordings first: runs/recordings.sh. What workers were measured at is in configs/ratings;
# `runs/recorded-conductor.sh ratings` makes it again from the training questions.
#   [SEED=0] [SPLIT=validation] [COST_SENSITIVITY=0] [EARLY_STOP=] [POOLS="..."] runs/recorded-conductor.sh
# COST_SENSITIVITY is the one level that is measured; without it all are. Votes stop once they are certain, in every row;
# EARLY_STOP= has everybody asked instead.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
SEED=${SEED:-0}
SPLIT=${SPLIT:-validation}
EARLY_STOP=${EARLY_STOP-yes}
RUN=${RUN:-runs/recorded-$SEED}
POOLS=${POOLS:-reasoning-gym-easy reasoning-gym-hard reasoning-gym-easy-six reasoning-gym-hard-six mmlu-pro math-l5}

if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi
if [ "${1:-}" = ratings ]; then
  rate() { podium rate "runs/recordings/$1.parquet" "configs/ratings/$2.json" --pool "configs/pools/$2.toml" --clusters "$3"; }
  add() { podium rate "runs/recordings/$1.parquet" "configs/ratings/$1.json" --pool "configs/pools/$1-calculator.toml" --like "configs/ratings/$1.json"; }
  rate reasoning-gym-easy reasoning-gym-easy 128
  rate reasoning-gym-hard reasoning-gym-hard 128
  add reasoning-gym-easy
  add reasoning-gym-hard
  rate mmlu-pro mmlu-pro 1
  rate zeroeval-math-l5 math-l5 1
  exit
fi
if [ ! -d "$RUN/policy" ]; then
  # A policy that its gate does not pass is there all the same.
  podium train --stage warmstart --config configs/taught-recorded.toml --run "$RUN" "seed=$SEED" || [ -d "$RUN/policy" ]
fi
for pool in $POOLS; do
  repeats=1
  case $pool in
    reasoning-gym-easy*) recording=reasoning-gym-easy repeats=3 ;;
    reasoning-gym-hard*) recording=reasoning-gym-hard ;;
    mmlu-pro) recording=mmlu-pro ;;
    math-l5) recording=zeroeval-math-l5 ;;
  esac
  podium eval --tasks "runs/recordings/$recording.parquet" --pool "configs/pools/$pool.toml" \
    --conductor "$RUN/policy" --split "$SPLIT" --questions 2000 --repeats "$repeats" --max-steps 6 \
    ${COST_SENSITIVITY:+--cost-sensitivity "$COST_SENSITIVITY"} ${EARLY_STOP:+--early-stop} \
    --markdown | tee "$RUN/$SPLIT-$pool.md"
done
