#!/usr/bin/env bash
# Every planner and control on the embedded questions, five seeds, and the report: 5 minutes on two cores. Workers are
# simulated. The same command continues a run that was stopped.
#   RUN=runs/embedded-2 runs/embedded.sh questions=400     more questions
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUN=${RUN:-runs/embedded}
began=$SECONDS
podium eval configs/eval/embedded.toml "$@" --run "$RUN" --declare "${NOTE:-The table of the embedded questions.}" \
  --markdown | tee "$RUN.md"
echo "That took $((SECONDS - began)) s. The report: $RUN/report.html"
