"""The workflow language: what is to happen (design §4)."""

from podium.workflow.model import Acceptance, Access, PlanError, Step, Workflow

__all__ = ["Acceptance", "Access", "PlanError", "Step", "Workflow"]
