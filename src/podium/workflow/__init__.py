"""The workflow language: a plan as data. This package parses, checks and renders plans, and describes their graphs."""

from podium.workflow.check import AccessRule, PlanRules, check
from podium.workflow.model import (
    Acceptance,
    Access,
    PlanError,
    PlanForm,
    Step,
    Workflow,
    edges,
    needed_steps,
    render,
    topology,
)
from podium.workflow.parse import parse
from podium.workflow.schema import plan_schema
from podium.workflow.search import text_before_lists, thought_in
from podium.workflow.structured import StepReader

__all__ = [
    "Acceptance",
    "Access",
    "AccessRule",
    "PlanError",
    "PlanForm",
    "PlanRules",
    "Step",
    "StepReader",
    "Workflow",
    "check",
    "edges",
    "needed_steps",
    "parse",
    "plan_schema",
    "render",
    "text_before_lists",
    "thought_in",
    "topology",
]
