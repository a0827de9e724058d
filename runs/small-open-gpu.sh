#!/usr/bin/env bash
# Trains the Conductor of small-open on a GPU machine that reaches nothing, in ten minutes.
#   runs/small-open-gpu.sh pack FOLDER                    where there is a network: models, packages, questions
#   runs/small-open-gpu.sh train FOLDER OUT [KEY=VALUE ...]   with torch there: OUT gets policy, metrics, evaluation
# Questions are those of $PODIUM_DATA. The three workers run on the processor, by llama.cpp; the policy on the GPU.
# What lies in OUT is resumed. MINUTES (5) are for reinforcement, QUESTIONS (40) for the evaluation on validation.
set -euo pipefail
cd "$(dirname "$0")/.."
config=configs/train/small-open.toml

pack() {
  local folder=$1 bin=$PWD/.venv/bin
  mkdir -p "$folder/wheels"
  "$bin/python" runs/published_models.py fetch "$folder/models"
  "$bin/python" -m pip --quiet install gguf
  [ -d "$folder/start" ] || "$bin/python" runs/published_models.py convert "$folder/models/smol.gguf" "$folder/start"
  # torch, and what comes with it, is on the other machine.
  "$bin/python" -m pip --quiet wheel --no-deps --wheel-dir "$folder/wheels" . ./research
  "$bin/python" -m pip freeze --exclude-editable |
    grep -Eiv '^(torch|triton|nvidia|podium)' > "$folder/requirements.txt"
  "$bin/python" -m pip --quiet download --no-deps --dest "$folder/wheels" -r "$folder/requirements.txt"
  cp -r "${PODIUM_DATA:?name the folder of the questions}" "$folder/data"
}

train() {
  local folder out
  folder=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2")
  shift 2
  export PODIUM_DATA=$folder/data HF_HOME=$out/hub HF_HUB_OFFLINE=1
  if [ ! -e "$out/.venv/done" ]; then
    python3 -m venv --system-site-packages "$out/.venv"
    "$out/.venv/bin/python" -m pip --quiet install --no-index --no-deps "$folder"/wheels/*.whl
    touch "$out/.venv/done"
  fi
  local podium=$out/.venv/bin/podium
  "$out/.venv/bin/python" runs/published_models.py cache "$folder/models" "$HF_HOME"
  local given=(--config "$config" "$@")
  "$podium" train --run "$out/form" "${given[@]}" --stage sft "start=$folder/start"
  "$podium" train --run "$out/run" "${given[@]}" "start=$out/form/policy" "grpo.minutes=${MINUTES:-5}"
  "$podium" eval --run "$out/run" --split validation --untrained "$out/form/policy" --questions "${QUESTIONS:-40}" eval.tuning=0 | tee "$out/evaluation.txt"
  "$podium" report "$out/run"
}

case ${1:-} in
  pack) [ $# = 2 ] && pack "$2" ;;
  train) [ $# -ge 3 ] && train "${@:2}" ;;
  *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
