#!/usr/bin/env bash
# Makes recordings of published answers, for pools in configs/pools, from tables in the folder DATA.
# Those that are there already are replaced.
#   DATA=FOLDER research/runs/recordings.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/../.venv/bin:$PATH"
DATA=${DATA:-data}
TO=${TO:-runs/recordings}

if [ ! -d "$DATA" ]; then
  echo "There is no folder $DATA with the tables; set DATA=, or import the sources themselves:"
  echo "  git clone https://github.com/open-thought/reasoning-gym-eval"
  echo "  podium replay import reasoning-gym reasoning-gym-eval/reasoninggym-paper-experiments/zero-shot/easy $TO/reasoning-gym-easy.parquet"
  echo "  git clone https://github.com/WildEval/ZeroEval"
  echo "  podium replay import zeroeval ZeroEval/result_dirs/gsm $TO/zeroeval-gsm.parquet"
  echo "  git clone https://github.com/TIGER-AI-Lab/MMLU-Pro"
  echo "  podium replay import mmlu-pro MMLU-Pro/eval_results $TO/mmlu-pro.parquet"
  exit 0
fi
for mapping in configs/recordings/*.toml; do
  name=$(basename "$mapping" .toml)
  podium replay import table "$mapping" "$TO/$name.parquet" --folder "$DATA" --replace
done
