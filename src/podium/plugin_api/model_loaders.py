"""For the group `podium.model_loaders`: how a policy is loaded."""

from podium.conductor.loaded_model import LoadedModel, ModelLoader

__all__ = ["LoadedModel", "ModelLoader"]
