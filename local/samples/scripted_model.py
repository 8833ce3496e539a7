"""A language model whose answers are written down, called and recorded like a real one."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from runtally import Run, Step


@dataclass(frozen=True)
class ScriptedModel:
    """`script` is the model's mind: the same prompt gives the same answer. Prices are a token."""

    script: Callable[[str], str]
    system: str = "Answer in one line."
    name: str = "scripted-1"
    input_usd: Decimal = Decimal("0.00000027")
    cached_usd: Decimal = Decimal("0.000000027")
    output_usd: Decimal = Decimal("0.0000011")

    def ask(self, caller: Run | Step, prompt: str, phase: str | None = None) -> str:
        """The answer. The call is recorded below `caller` as one step of kind `model`."""
        with caller.step("chat", kind="model", phase=phase) as step:
            answer = self.script(prompt)
            cached, fresh, out = (tokens(text) for text in (self.system, prompt, answer))
            step.set(
                model=self.name,
                provider="local.samples",
                input_tokens=cached + fresh,
                cached_tokens=cached,
                output_tokens=out,
                cost_usd=(
                    cached * self.cached_usd + fresh * self.input_usd + out * self.output_usd
                ),
                payload=[
                    {"role": "system", "content": self.system},
                    {"role": "user", "content": prompt},
                    {"role": "assistant", "content": answer},
                ],
            )
        return answer


def tokens(text: str) -> int:
    """As many as a usual tokenizer makes of it, roughly: one for three bytes."""
    return -(-len(text.encode()) // 3)
