#!/usr/bin/env bash
# Conductors over the orchestra, whose workers are small language models: three seeds of GRPO, two at a time, each on
# one core, and then all of them beside their start and each worker alone. lab/configs/eval/world.toml compares the one that
# ships with rival planners.
#   lab/runs/world.sh                                             with the workers and the start that ship
#   lab/runs/orchestra.sh start && FROM=nothing lab/runs/world.sh     everything from nothing
#   SEEDS=1 lab/runs/world.sh                                     one seed instead of three
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/.venv/bin:$PATH"
RUNS=runs/world
SEEDS=${SEEDS:-3}
began=$SECONDS

case "${FROM:-package}" in
  package) POOL=orchestra START=lab/src/podium_lab/assets/world-warmstart ;;
  nothing)
    POOL=runs/orchestra/pool.toml START=$RUNS/warmstart/policy
    for made in $START $(ls lab/src/podium_lab/assets/orchestra | sed 's|.*|runs/orchestra/&/card.json|'); do
      [ -e "$made" ] || { echo "There is no $made yet; run \`lab/runs/orchestra.sh start\` first." >&2; exit 2; }
    done ;;
  *) echo "FROM is $FROM; leave it out, or give nothing." >&2; exit 2 ;;
esac
if [ ! -d $RUNS/start ]; then  # lab/configs/world.toml and lab/configs/eval/world-seeds.toml name it.
  mkdir -p $RUNS
  rm -rf $RUNS/.start && cp -r "$START" $RUNS/.start && mv $RUNS/.start $RUNS/start
fi
cmp -s "$START/model.safetensors" $RUNS/start/model.safetensors || {
  echo "$RUNS has Conductors from another start than $START; move $RUNS/start, seed-* and seeds away." >&2
  exit 2
}
seq 0 $((SEEDS - 1)) | OMP_NUM_THREADS=1 xargs -P 2 -I SEED \
  podium train --config lab/configs/world.toml --run $RUNS/seed-SEED pool="$POOL" seed=SEED
trained=$SECONDS
podium eval lab/configs/eval/world-seeds.toml seeds="$SEEDS" "pool=[{name='$POOL'}]" "$@" --run $RUNS/seeds \
  --declare "${NOTE:-Three seeds over the orchestra.}" --markdown | tee $RUNS/seeds.md
echo "Training took $((trained - began)) s, the table $((SECONDS - trained)) s. The report: $RUNS/seeds/report.html"
