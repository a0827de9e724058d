"""The workflow language: a plan as data. It parses, checks and renders plans, and computes facts of their graph."""

from podium.workflow.check import AccessRule, check
from podium.workflow.graph import Topology, edges, live_steps, topology, width
from podium.workflow.model import Acceptance, Access, PlanError, PlanForm, Step, Workflow, render
from podium.workflow.parse import parse
from podium.workflow.partial import StepReader
from podium.workflow.schema import SchemaKind, plan_schema
from podium.workflow.search import before_triple, thought_in

__all__ = [
    "Acceptance",
    "Access",
    "AccessRule",
    "PlanError",
    "PlanForm",
    "SchemaKind",
    "Step",
    "StepReader",
    "Topology",
    "Workflow",
    "before_triple",
    "check",
    "edges",
    "live_steps",
    "parse",
    "plan_schema",
    "render",
    "thought_in",
    "topology",
    "width",
]
