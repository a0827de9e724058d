#!/usr/bin/env bash
# Teaches the Conductor for recorded answers once more: its prompt shows each worker's estimated accuracy on the question
# itself, where that of checkpoints/recorded shows tallies of the question's cluster. Then measures it on validation, at
# each level of cost sensitivity, beside the fronts of all routers. Recordings first: runs/recordings.sh
#   [RUN=runs/estimates] [SPLIT=validation] [QUESTIONS=2000] [NOTE=...] runs/estimates.sh [ratings|train|measure|fronts]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
RUN=${RUN:-runs/estimates}
SPLIT=${SPLIT:-validation}
QUESTIONS=${QUESTIONS:-2000}
NOTE=${NOTE:-The Conductor that reads estimates, once on each level, beside the fronts of all routers.}

if [ ! -f runs/recordings/reasoning-gym-easy.parquet ]; then
  echo "There are no recordings in runs/recordings; make them with: DATA=... runs/recordings.sh"
  exit 0
fi

# The same clusters and pools, with ratings that estimate single questions from all training questions.
ratings() {
  mkdir -p "$RUN"
  for set in easy hard; do
    name=reasoning-gym-$set
    podium rate "runs/recordings/$name.parquet" "$RUN/$name.json" --pool "configs/pools/$name.toml" \
      --like "configs/ratings/$name.json" --estimates
    for pool in "$name" "$name-six"; do
      sed "s|^ratings = .*|ratings = \"$name.json\"|; s|\.\./\.\./runs/|$PWD/runs/|" \
        "configs/pools/$pool.toml" > "$RUN/$pool.toml"
    done
  done
}

# Three stages of the training stand in a run that was killed; the same command goes on after the last one.
train() {
  # A policy that its gate does not pass is there all the same.
  [ -d "$RUN/conductor/policy" ] ||
    podium train --stage warmstart --config configs/taught-estimates.toml --run "$RUN/conductor" ||
    [ -d "$RUN/conductor/policy" ]
}

# One suite for each pool. Easy questions have three recorded answers of each worker, hard ones have one.
measure() {
  declared=(--declare "$NOTE")
  [ "$SPLIT" != train ] || declared=()
  for pool in reasoning-gym-{easy,hard}{,-six}; do
    {
      echo "split = \"$SPLIT\""
      echo "questions = $QUESTIONS"
      echo "seeds = 1"
      echo "training = 1"
      echo "repeats = $([[ $pool = *easy* ]] && echo 3 || echo 1)"
      echo "early_stop = true"
      echo "max_steps = 6"
      for level in {0..7}; do
        echo "[[planner]]"
        echo "name = \"conductor\""
        echo "conductor = \"$RUN/conductor/policy\""
        echo "cost_sensitivity = $level"
        echo "label = \"Conductor, thrift $level\""
      done
      printf '[[planner]]\nname = "by-ratings:0"\nlabel = "by-ratings:0, by estimates"\n'
      printf '[[tasks]]\nname = "runs/recordings/%s.parquet"\n' "${pool%-six}"
      printf '[[pool]]\nname = "%s"\n' "$RUN/$pool.toml"
    } > "$RUN/suite-$pool.toml"
    podium eval "$RUN/suite-$pool.toml" --run "$RUN/$SPLIT/$pool" --markdown "${declared[@]}" > "$RUN/$SPLIT-$pool.md"
  done
}

fronts() {
  [ "$SPLIT" = validation ] || { echo "The fronts are of validation alone."; return; }
  python runs/router-fronts.py --conductor "$RUN" | tee "$RUN/router-fronts.md"
}

for part in ${1:-ratings train measure fronts}; do "$part"; done
