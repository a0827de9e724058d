"""Published benchmarks as task sets. Each class has an entry point; its docstring names source, licence and traps."""

import podium.tasks.sets.registry  # noqa: F401 - it imports these modules, and may not meet one that is half loaded
