#!/usr/bin/env bash
# The orchestra from nothing: its workers, several at a time, each on one core. Those that take longest begin.
#   runs/orchestra.sh                      the workers; `make orchestra` does so
#   runs/orchestra.sh start                the start of Conductors over them too, which reads their profiles alone
#   AT_ONCE=12 runs/orchestra.sh start     all at the same time: for a machine with a GPU and many cores
# The same command continues what was stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
WARMSTART=runs/world/warmstart
began=$SECONDS

{
  # A policy that its gate does not pass is there all the same.
  [ "${1:-}" = start ] && [ ! -d $WARMSTART/policy ] &&
    echo "podium train --stage warmstart --config configs/warmstart-world.toml --run $WARMSTART || [ -d $WARMSTART/policy ]"
  python - <<'LIST'
from podium.orchestra.abilities import ABILITIES

for ability in sorted(ABILITIES, key=lambda ability: -ability.steps_multiplier):
    print(f"""podium train --stage orchestra --run runs/orchestra "workers=['{ability.name}']" """)
LIST
} | tr '\n' '\0' | OMP_NUM_THREADS=1 xargs -0 -P "${AT_ONCE:-2}" -I COMMAND bash -c COMMAND
echo "The orchestra took $((SECONDS - began)) s."
