#!/usr/bin/env bash
# What else Conductors over the orchestra learn: pools that change, to see an answer and plan again, and the cost dial.
# It goes on from what runs/world.sh made: two trainings at a time, each on one core, then a table for each question.
#   runs/world-more.sh                 seed 0
#   SEED=1 runs/world-more.sh          another seed; the tables name the policies of seed 0
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUNS=runs/world
SEED=${SEED:-0}
FROM=start=$RUNS/seed-$SEED/policy
[ -d $RUNS/seed-$SEED/policy ] || { echo "There is no $RUNS/seed-$SEED/policy; run runs/world.sh first." >&2; exit 2; }
began=$SECONDS

export OMP_NUM_THREADS=1
xargs -P 2 -L 1 podium train "grpo.seed=$SEED" <<TRAININGS
--config configs/world-adaptive.toml --run $RUNS/adaptive-$SEED
--config configs/world-adaptive.toml --run $RUNS/adaptive-all-$SEED pool_draw.without=[] pool_draw.subsets=all
--config configs/world-rounds.toml --run $RUNS/rounds-$SEED $FROM
--config configs/world-dial.toml --run $RUNS/dial-$SEED $FROM
TRAININGS
trained=$SECONDS
for table in adaptive decline rounds dial; do
  podium eval configs/eval/world-$table.toml "$@" --run $RUNS/$table --declare "${NOTE:-Over the orchestra: $table.}" \
    --markdown | tee $RUNS/$table.md
done
python runs/rounds.py $RUNS/rounds
echo "Training took $((trained - began)) s, the tables $((SECONDS - trained)) s."
