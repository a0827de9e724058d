"""Random tiny checkpoints."""

from tiny_models import make_checkpoint

__all__ = ["make_checkpoint"]
