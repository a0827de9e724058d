#!/usr/bin/env bash
# The clients of docs/agents.md with their real packages, against a server on loopback. Their pins exclude each other, so
# each group stands in an environment of its own, which is made once: runs/clients
#   runs/clients.sh [PYTEST'S ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
place=$PWD/runs/clients
tests=tests/server/clients
mkdir -p "$place/node"
# pip needs many minutes to choose the versions of Open WebUI's packages, uv seconds.
if [ ! -e "$place/uv/bin/uv" ]; then
  "$PYTHON" -m venv "$place/uv"
  "$place/uv/bin/python" -m pip --disable-pip-version-check --quiet install uv
fi
for name in python litellm aider webui; do
  if [ "$tests/requirements-$name.txt" -nt "$place/$name/done" ]; then
    "$PYTHON" -m venv "$place/$name"
    "$place/uv/bin/uv" pip install --quiet --system-certs --python "$place/$name/bin/python" -r "$tests/requirements-$name.txt" \
      --override "$tests/overrides.txt"
    touch "$place/$name/done"
  fi
done
if [ "$tests/package.json" -nt "$place/node/done" ]; then
  cp "$tests/package.json" "$place/node/"
  (cd "$place/node" && npm install --silent --no-audit --no-fund)
  touch "$place/node/done"
fi
PODIUM_CLIENTS=$place .venv/bin/python -m pytest -p no:cacheprovider --timeout 900 "$tests/real_clients.py" "$tests/real_suites.py" \
  "$tests/real_document.py" "$@"
