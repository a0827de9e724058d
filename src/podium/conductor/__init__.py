"""conductor."""
