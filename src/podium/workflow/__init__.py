"""The workflow language: a plan as data. It parses, checks and renders plans, and computes facts of their graph."""

from podium.workflow.check import AccessRule, check
from podium.workflow.graph import Topology, depth, edges, live_steps, topology, width
from podium.workflow.model import Acceptance, Access, PlanError, Step, Workflow, render
from podium.workflow.parse import parse
from podium.workflow.triple import before_triple

__all__ = [
    "Acceptance",
    "Access",
    "AccessRule",
    "PlanError",
    "Step",
    "Topology",
    "Workflow",
    "before_triple",
    "check",
    "depth",
    "edges",
    "live_steps",
    "parse",
    "render",
    "topology",
    "width",
]
