"""Plans: small programs in JSON that find, narrow, walk, sort and count, validated whole before anything runs.

`program` says what a plan may be, `run` what it means, `compiler` makes one of a question by rules. docs/plans.md.
"""

from kektor.query.plan.compiler import compile_question
from kektor.query.plan.program import Plan, read_plan
from kektor.query.plan.run import Outcome, run_plan

__all__ = ["Outcome", "Plan", "compile_question", "read_plan", "run_plan"]
