"""Training the Conductor by GRPO in plain torch, on one device, for small policies.

Nothing is imported here, so that a caller can import `settings`, `progress`, `runtime`, `shape` or `objective`
without loading torch. The other modules load it.
"""
