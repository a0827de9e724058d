#!/usr/bin/env bash
# What else Conductors over the orchestra learn: pools that change, to see an answer and plan again, and the cost dial.
# It goes on from what runs/world.sh made: four trainings for each of three seeds, two at a time, each on one core, and
# then a table for each question. SEEDS=0 does it for one seed.
#   runs/world-more.sh
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUNS=runs/world
SEEDS=${SEEDS:-0 1 2}
began=$SECONDS

for seed in $SEEDS; do
  [ -d $RUNS/seed-$seed/policy ] || { echo "There is no $RUNS/seed-$seed/policy; run runs/world.sh first." >&2; exit 2; }
  cat <<TRAININGS
grpo.seed=$seed --config configs/world-rounds.toml --run $RUNS/rounds-$seed start=$RUNS/seed-$seed/policy
grpo.seed=$seed --config configs/world-dial.toml --run $RUNS/dial-$seed start=$RUNS/seed-$seed/policy
grpo.seed=$seed --config configs/world-adaptive.toml --run $RUNS/adaptive-$seed
grpo.seed=$seed --config configs/world-adaptive.toml --run $RUNS/adaptive-all-$seed pool_draw.without=[] pool_draw.subsets=all
TRAININGS
done | OMP_NUM_THREADS=1 xargs -P 2 -L 1 podium train
trained=$SECONDS
for table in adaptive decline rounds dial; do
  podium eval configs/eval/world-$table.toml "seeds=$(wc -w <<<"$SEEDS")" "$@" --run $RUNS/$table \
    --declare "${NOTE:-Over the orchestra: $table.}" --markdown | tee $RUNS/$table.md
done
python runs/rounds.py $RUNS/rounds
echo "Training took $((trained - began)) s, the tables $((SECONDS - trained)) s."
