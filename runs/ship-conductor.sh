#!/usr/bin/env bash
# Makes a run's policy the Conductor that comes with the package: in half precision, with the run's settings and metrics.
#   runs/ship-conductor.sh runs/embedded-long/seed-0
set -euo pipefail
cd "$(dirname "$0")/.."
RUN=${1:?give the folder of a training run}
TO=src/podium/assets/conductor
rm -rf "$TO"
.venv/bin/python - "$RUN/policy" "$TO" <<'PYTHON'
import sys
from pathlib import Path

from podium.conductor.checkpoint import Checkpoint
from podium.train.weights import companions_of, read_model, write_model

source, target = Checkpoint.read(Path(sys.argv[1])), Path(sys.argv[2])
write_model(
    read_model(source), target, config=source.config, companions=companions_of(source.path), dtype="bfloat16"
)
PYTHON
mkdir -p "$TO/run"
cp "$RUN/config.json" "$RUN/metrics.jsonl" "$TO/run/"
[ ! -f "$RUN/comparison.json" ] || cp "$RUN/comparison.json" "$TO/run/"
chmod -R u=rwX,go=rX "$TO"
