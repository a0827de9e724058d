"""Training the Conductor by GRPO: settings, prompts, rewards and runs, and two engines, `shared_prefix` and `trl`.

Nothing is imported here, so that a caller can import `settings`, `progress`, `runtime`, `shape` or `objective`
without loading torch. The other modules load it.
"""
