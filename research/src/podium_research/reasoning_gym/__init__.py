"""The library reasoning-gym as a task set. It runs in processes of its own: it makes questions and verifies answers.

Some generators depend on the hash seed or on Python's global random state, one runs programs that the library ships,
and some verifiers evaluate what a model wrote. So the library never runs in our process. `process_pool` starts and
keeps the processes (`process`), which have a fixed hash seed and limited time and memory; `answer_rules` refuses
answers that a verifier would take too lightly. `task_set` asks them for questions and verdicts.
"""

import podium.tasks.sets.registry  # noqa: F401 - it imports these modules, and may not meet one that is half loaded
