#!/usr/bin/env bash
# Every planner and control that recorded answers can serve, on two difficulties and two sizes of pool, and the report.
# Recordings first: runs/recordings.sh. The same command continues a run that was stopped.
#   RUN=runs/recorded-test NOTE="The one run on test." runs/recorded.sh split=test
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/../.venv/bin:$PATH"
RUN=${RUN:-runs/recorded-suite}
if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi
began=$SECONDS
podium eval configs/eval/recorded.toml "$@" --run "$RUN" ${NOTE:+--declare "$NOTE"} --markdown | tee "$RUN.md"
echo "That took $((SECONDS - began)) s. The report: $RUN/report.html"
