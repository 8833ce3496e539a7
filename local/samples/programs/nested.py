"""Agents that hand parts of a problem to sub-agents, five deep. Shows a tree without phases.

Nobody names a phase: the recount takes, for each step, the name of the outermost sub-agent that it
belongs to. The problem is arithmetic; every agent takes one operation and gives away its operands.
"""

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Run, Step

PIPELINE = "nested"
PROBLEM = "((7 + 5) * (9 - 4) + 6 / (8 - 5)) - ((2 + 3) * 4 - 10 / (1 + 1))"
OPERATIONS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def main(recorder: Recorder) -> None:
    with recorder.run(pipeline=PIPELINE, attributes={"problem": PROBLEM}) as run:
        run.result = str(solve(run, ast.parse(PROBLEM, mode="eval").body))


def solve(caller: Run | Step, problem: ast.expr) -> Fraction:
    """One agent: plan with the model, solve each operand by a sub-agent, put together by a tool."""
    text = ast.unparse(problem)
    with caller.step(text, agent="solver", kind="agent") as step:
        match problem:
            case ast.BinOp(left, operation, right):
                name = type(operation).__name__
                model = ScriptedModel(lambda prompt: f"{name} of two parts of {prompt}")
                model.ask(step, text)
                parts = solve(step, left), solve(step, right)
                answer = calculate(step, name, OPERATIONS[type(operation)], *parts)
            case ast.Constant(int(number)):
                answer = Fraction(number)
            case _:
                raise ValueError(f"no arithmetic: {text}")
        step.set(payload={"problem": text, "answer": str(answer)})
    return answer


def calculate(
    caller: Step,
    name: str,
    operation: Callable[[Fraction, Fraction], Fraction],
    left: Fraction,
    right: Fraction,
) -> Fraction:
    """The tool: exact arithmetic."""
    with caller.step(name, kind="tool") as step:
        answer = operation(left, right)
        step.set(payload={"left": str(left), "right": str(right), "answer": str(answer)})
    return answer


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
