#!/usr/bin/env bash
# The kind litellm with its real library, against a server on loopback that fails in every way. The library pins others'
# versions, so both stand in an environment of their own, which is made once: runs/litellm
#   [LITELLM="litellm==1.106.2"] runs/litellm.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
LITELLM=${LITELLM:-}
place=runs/litellm
pip="$place/bin/python -m pip --disable-pip-version-check --quiet"

[ -x "$place/bin/python" ] || "$PYTHON" -m venv "$place"
if [ ! -f "$place/done" ] || [ pyproject.toml -nt "$place/done" ] || [ -n "$LITELLM" ]; then
  $pip install -e '.[litellm]' -e testing hypothesis pytest pytest-asyncio pytest-timeout
  [ -z "$LITELLM" ] || $pip install "$LITELLM"
  touch "$place/done"
fi
"$place/bin/python" -c 'from importlib.metadata import version; print("litellm", version("litellm"))'
"$place/bin/python" -m pytest -p no:cacheprovider tests/workers/litellm_calls.py tests/workers/test_litellm_worker.py
