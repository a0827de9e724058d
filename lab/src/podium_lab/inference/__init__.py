"""Runs small Llama and Qwen2 models in NumPy, and guides what they write."""
