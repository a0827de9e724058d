"""GRPO in plain torch, on one device, which reads the prompt of a group once, in sampling and in training."""
