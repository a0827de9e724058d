"""Trains any Hugging Face language model to conduct, through TRL."""
