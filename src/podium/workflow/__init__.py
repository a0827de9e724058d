"""The workflow language: a plan as data. It parses, checks and renders plans, and computes facts of their graph."""

from podium.workflow.check import AccessRule
from podium.workflow.check import check
from podium.workflow.graph import Topology
from podium.workflow.graph import depth
from podium.workflow.graph import edges
from podium.workflow.graph import live_steps
from podium.workflow.graph import topology
from podium.workflow.graph import width
from podium.workflow.model import Acceptance
from podium.workflow.model import Access
from podium.workflow.model import PlanError
from podium.workflow.model import Step
from podium.workflow.model import Workflow
from podium.workflow.model import render
from podium.workflow.parse import parse

__all__ = [
    "Acceptance",
    "Access",
    "AccessRule",
    "PlanError",
    "Step",
    "Topology",
    "Workflow",
    "check",
    "depth",
    "edges",
    "live_steps",
    "parse",
    "render",
    "topology",
    "width",
]
