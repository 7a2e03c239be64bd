"""The columns of an answer that carry noise, and the released columns that each is made of."""

from discreet.sql.after.values import Origin, reads
from discreet.sql.plan import Measure, Part, Plan


def origins(plan: Plan) -> dict[str, Origin]:
    """Return what each column of the answer is made of."""
    return dict(zip(plan.after.names, plan.after.row_wise, strict=True))


def noisy_names(plan: Plan) -> list[str]:
    """Return the columns of the answer in which noise took part."""
    return [name for name, origin in origins(plan).items() if sources(plan, origin)]


def sources(plan: Plan, origin: Origin) -> list[tuple[Part, Measure]]:
    """Return the noisy columns that a column of the answer is made of."""
    wanted = reads([origin])
    return [(part, measure) for part in plan.parts for measure in part.measures if (part.name, measure.name) in wanted]
