#!/usr/bin/env bash
# Trains the Conductor of small-open on a GPU machine that reaches nothing, in ten minutes.
#   runs/small-open-gpu.sh pack FOLDER                 where there is a network: models, packages, questions
#   runs/small-open-gpu.sh STEP FOLDER OUT [KEY=VALUE ...]     with torch there; STEP is one of these, or `all`:
#     install     packages and the start                serve      the three workers
#     form        supervised: the form of a plan        train      reinforcement; OUT/run has policy and metrics
#     look        the table on validation questions, and the report
# Questions are those of $PODIUM_DATA, and packages those for PYTHON (python3.12), which the other machine has too.
# LLAMA_SERVER names llama.cpp's llama-server, built for the GPU; it serves SLOTS (64) requests at once. Without it the
# workers run on the processor. What lies in OUT is resumed. MINUTES (5) are for reinforcement, QUESTIONS (200) for the
# table.
set -euo pipefail
cd "$(dirname "$0")/.."
config=configs/train/small-open.toml

pack() {
  local folder=$1 bin=$PWD/.venv/bin
  mkdir -p "$folder/wheels"
  "$bin/python" runs/published_models.py fetch "$folder/models"
  "$bin/python" -m pip --quiet wheel --no-deps --wheel-dir "$folder/wheels" . ./research
  # torch, and what comes with it, is on the other machine; so are the large packages around numpy.
  "${PYTHON:-python3.12}" -m venv "$folder/venv"
  local core=("$folder"/wheels/podium_conductor-*.whl) research=("$folder"/wheels/podium_research-*.whl)
  "$folder/venv/bin/python" -m pip --quiet install --dry-run --report "$folder/packages.json" gguf \
    "${core[0]}[gguf,tasks,train]" "${research[0]}[reasoning-gym]"
  "$bin/python" - "$folder/packages.json" > "$folder/requirements.txt" <<'PY'
import json, sys
for package in json.load(open(sys.argv[1]))["install"]:
    name = package["metadata"]["name"].lower()
    if not name.startswith(("torch", "triton", "nvidia", "cuda", "podium", "numpy", "pandas", "pyarrow", "sci", "matplotlib", "pillow")):
        print(f'{name}=={package["metadata"]["version"]}')
PY
  "$folder/venv/bin/python" -m pip --quiet wheel --no-deps --wheel-dir "$folder/wheels" -r "$folder/requirements.txt"
  cp -r "${PODIUM_DATA:?name the folder of the questions}" "$folder/data"
}

install() {
  [ -e "$out/site/done" ] || python3 -m pip --quiet install --no-index --no-deps --no-compile --upgrade \
    --target "$out/site" "$folder"/wheels/*.whl
  touch "$out/site/done"
  [ -d "$out/start" ] || python3 runs/published_models.py convert "$folder/models/smol.gguf" "$out/start"
}

healthy() {
  python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "http://127.0.0.1:$1/health" 2> /dev/null
}

serve() {
  python3 runs/published_models.py cache "$folder/models" "$HF_HOME"
  [ -n "${LLAMA_SERVER:-}" ] || return 0
  local port=8101 slots=${SLOTS:-64} model
  python3 runs/published_models.py endpoints "$out" $port "$slots"
  for model in qwen-1.5b qwen-0.5b smol; do
    if ! healthy $port; then
      setsid "$LLAMA_SERVER" --model "$folder/models/$model.gguf" --port $port --parallel "$slots" \
        --ctx-size $((slots * 4096)) --n-gpu-layers 99 --jinja --no-webui --cache-ram 0 > "$out/$model.log" 2>&1 &
    fi
    port=$((port + 1))
  done
  for port in 8101 8102 8103; do
    for _ in $(seq 240); do
      if healthy $port; then break; fi
      sleep 0.5
    done
    healthy $port || { echo "The server at port $port did not become ready; its log is in $out." >&2; exit 1; }
  done
}

form() {  # a micro-batch takes as long with 8 plans as with 32
  podium train --run "$out/form" --config $config --stage sft "start=$out/start" \
    sft.count=14336 sft.group=32 sft.batch=64 sft.micro_batch=32 sft.save_every=50 "$@"
}

reinforce() {  # few large batches, since most of an iteration waits for the slowest answer
  podium train --run "$out/run" --config $config "start=$out/form/policy" "grpo.minutes=${MINUTES:-5}" \
    --cache "$out/answers.sqlite" "pool=$pool" \
    grpo.iterations=16 grpo.questions=16 grpo.group=16 grpo.lr=4e-5 grpo.save_every=2 "$@"
}

look() {
  sed -e "s|runs/small-open/conductor-0|$out/run|; s|runs/small-open/form|$out/form|" \
    -e "s|research/configs/pools/small-open-ways.toml|$ways|; s|name = \"small-open\"|name = \"$pool\"|" \
    research/configs/eval/small-open-look.toml > "$out/look.toml"
  podium eval "$out/look.toml" --run "$out/look" --cache "$out/answers.sqlite" "questions=${QUESTIONS:-200}" \
    "concurrency=${SLOTS:-8}" "$@" | tee "$out/look.txt"
  podium report "$out/run" "$out/look"
}

step=${1:-}
[ $# -ge 2 ] || { sed -n '2,12s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$2"
folder=$(realpath "$2")
if [ "$step" = pack ]; then
  pack "$folder"
  exit
fi
[ $# -ge 3 ] || { sed -n '2,12s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$3"
out=$(realpath "$3")
shift 3
export PODIUM_DATA=$folder/data HF_HOME=$out/hub HF_HUB_OFFLINE=1 PYTHONPATH=$out/site PATH=$out/site/bin:$PATH
pool=small-open ways=research/configs/pools/small-open-ways.toml
if [ -n "${LLAMA_SERVER:-}" ]; then pool=$out/small-open.toml ways=$out/small-open-ways.toml; fi
case $step in
  install | serve | form | look) "$step" "$@" ;;
  train) reinforce "$@" ;;
  all)
    install
    serve
    form
    reinforce "$@"
    look
    ;;
  *) sed -n '2,12s/^# //p' "$0" >&2; exit 2 ;;
esac
