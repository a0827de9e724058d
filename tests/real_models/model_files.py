"""Where the files of published models lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MODELS = Path(os.environ.get("PODIUM_MODELS") or Path(sys.prefix) / "models")
"""`make setup-dev` puts smol.gguf there."""
