#!/usr/bin/env bash
# Makes a run's policy the Conductor that comes with the package: in half precision, with the run's settings and metrics.
#   lab/runs/ship-conductor.sh runs/world/seed-0 world-conductor    the one for the pool "orchestra"
#   lab/runs/ship-conductor.sh runs/world/warmstart world-warmstart    its start
# It is made beside the one that ships, and takes its place when it is whole.
set -euo pipefail
cd "$(dirname "$0")/../.."
RUN=${1:?give the folder of a training run}
NAME=${2:?give the name that it gets, such as world-conductor}
TO=lab/src/podium_lab/assets/$NAME
for needed in policy/config.json config.json metrics.jsonl; do
  [ -f "$RUN/$needed" ] || { echo "$RUN has no $needed; give the folder of a training run that has ended." >&2; exit 2; }
done
PART=$(dirname "$TO")/.$NAME.part
rm -rf "$PART"
trap 'rm -rf "$PART"' EXIT
.venv/bin/python - "$RUN/policy" "$PART" <<'PYTHON'
import sys
from pathlib import Path

from podium.conductor.checkpoint import Checkpoint
from podium.train.shared_prefix.checkpoints import companion_files, read_model, write_model

source, target = Checkpoint.read(Path(sys.argv[1])), Path(sys.argv[2])
write_model(
    read_model(source), target, config=source.config, companions=companion_files(source.path), dtype="bfloat16"
)
PYTHON
mkdir -p "$PART/run"
cp "$RUN/config.json" "$RUN/metrics.jsonl" "$PART/run/"
for more in comparison.json gate.json; do
  [ ! -f "$RUN/$more" ] || cp "$RUN/$more" "$PART/run/"
done
chmod -R u=rwX,go=rX "$PART"
trap - EXIT  # From here on a kill leaves a whole one, in the one place or the other.
rm -rf "$TO"
mv "$PART" "$TO"
