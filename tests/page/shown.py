"""How the page writes what the API tells, made by no code of the page."""


def cost(amount: str, unknown: int, calls: int) -> str:
    """Every digit of the amount; for how many calls it is not known."""
    missing = f"unknown for {unknown:,} call{'' if unknown == 1 else 's'}"
    if not unknown:
        return f"${amount}"
    return missing if unknown == calls else f"${amount} + {missing}"


def change(per_cent: float | None) -> str:
    if per_cent is None:
        return ""
    return "same" if per_cent == 0 else f"{per_cent:+,.1f}".removesuffix(".0") + "%"
