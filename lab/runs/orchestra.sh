#!/usr/bin/env bash
# The orchestra from nothing, several trainings at a time, each on one core. The longest start first.
#   lab/runs/orchestra.sh                      the workers; `make orchestra` does so
#   lab/runs/orchestra.sh start                also the start of the Conductors over them. It needs the workers' profiles
#                                          alone, so it does not wait for them
#   AT_ONCE=12 lab/runs/orchestra.sh start     all at the same time: for a machine with many cores and a GPU, after
#                                          `make install-gpu`
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/.venv/bin:$PATH"
WARMSTART=runs/world/warmstart
began=$SECONDS

case "${1:-}" in
  "" | start) ;;
  *) echo "There is no $1; leave it out, or give start." >&2; exit 2 ;;
esac
{
  # A policy that its gate does not pass is there all the same.
  [ "${1:-}" = start ] && [ ! -d $WARMSTART/policy ] &&
    echo "podium train --stage warmstart --config lab/configs/warmstart-world.toml --run $WARMSTART || [ -d $WARMSTART/policy ]"
  python - <<'LIST'
from podium_lab.exercises.abilities import ABILITIES

for ability in sorted(ABILITIES, key=lambda ability: -ability.steps_multiplier):
    print(f"podium train --stage orchestra --run runs/orchestra \"workers=['{ability.name}']\"")
LIST
} | tr '\n' '\0' | OMP_NUM_THREADS=1 xargs -0 -P "${AT_ONCE:-2}" -I COMMAND \
  bash -c 'eval "$1" || { echo "This failed: $1" >&2; exit 1; }' _ COMMAND
echo "The orchestra took $((SECONDS - began)) s."
