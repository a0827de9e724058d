#!/usr/bin/env bash
# What else Conductors over the orchestra learn: pools that change, to see an answer and plan again, and the cost dial.
# It goes on from what lab/runs/world.sh made: two starts, five trainings for each of three seeds, two at a time, each on
# one core, and then a table for each question. Give it the SEEDS of lab/runs/world.sh; the pool is that of its Conductors.
#   lab/runs/world-more.sh
#   SEEDS=1 lab/runs/world-more.sh
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/.venv/bin:$PATH"
RUNS=runs/world
SEEDS=${SEEDS:-3}
began=$SECONDS

for seed in $(seq 0 $((SEEDS - 1))); do
  [ -d $RUNS/seed-$seed/policy ] || { echo "There is no $RUNS/seed-$seed/policy; run lab/runs/world.sh first." >&2; exit 2; }
done
POOL=$(python -c "import json; print(json.load(open('$RUNS/seed-0/config.json'))['pool'])")
# The dial and rounds have starts of their own. A policy that fails the gate is written too, and is used.
for kind in dial rounds; do
  [ "$kind" = dial ] && start=$RUNS/start || start=$RUNS/seed-0/policy
  [ -d $RUNS/$kind-start/policy ] ||
    podium train --stage warmstart --config lab/configs/warmstart-world-$kind.toml --run $RUNS/$kind-start start=$start ||
    [ -d $RUNS/$kind-start/policy ]
done
python - <<CHECK || exit 2
import json, sys
from podium_lab.warmstart.acceptance import STEPS_SAVED, AcceptanceReport
with open("$RUNS/dial-start/gate.json") as gate:
    reports = [AcceptanceReport(**report) for report in json.load(gate).values()]
if any(min(report.steps_saved, default=0) < STEPS_SAVED for report in reports):
    sys.exit("The start in $RUNS/dial-start does not tell the levels of cost sensitivity apart; "
             "move it and what was trained from it, $RUNS/dial-[0-9], away, and train it with another seed.")
CHECK
for seed in $(seq 0 $((SEEDS - 1))); do
  cat <<TRAININGS
seed=$seed --config lab/configs/world-dial.toml --run $RUNS/dial-$seed
seed=$seed --config lab/configs/world-rounds.toml --run $RUNS/rounds-$seed
seed=$seed --config lab/configs/world-rounds.toml --run $RUNS/once-$seed rounds=1 grpo.group=16
seed=$seed --config lab/configs/world-adaptive.toml --run $RUNS/adaptive-$seed
seed=$seed --config lab/configs/world-adaptive.toml --run $RUNS/adaptive-all-$seed pool_sampling.without=[] pool_sampling.subsets=all
TRAININGS
done | OMP_NUM_THREADS=1 xargs -P 2 -L 1 podium train pool="$POOL"
trained=$SECONDS
for table in adaptive decline rounds dial; do
  sed "s|^name = \"orchestra\"|name = \"$POOL\"|" lab/configs/eval/world-$table.toml > $RUNS/$table.toml
  podium eval $RUNS/$table.toml seeds="$SEEDS" "$@" --run $RUNS/$table --declare "${NOTE:-Over the orchestra: $table.}" \
    --markdown | tee $RUNS/$table.md
done
python lab/runs/rounds.py $RUNS/rounds
echo "Training took $((trained - began)) s, the tables $((SECONDS - trained)) s."
