"""The row on who is most exposed: success of every attack by deciles of rarity."""

from discreet import attacks
from mission.rows import record, row

ONE_PERSON = {"threshold_game"}  # about a single person
BEYOND = "members minus non-members"
SLOW = {"lone_cluster": {"plays": 2}}


def names():
    """Return the names of all attacks."""
    for name in attacks.__all__:
        try:
            attacks.attack_named(name)
        except ValueError:
            continue
        yield name


@row("A15", "Who is most exposed: success of every attack by deciles of rarity")
def a15():
    exposed = {
        name: getattr(attacks, name)(random_state=0, **SLOW.get(name, {})).exposure
        for name in names()
        if name not in ONE_PERSON
    }
    ends = {name: (each.deciles[0], each.deciles[-1]) for name, each in exposed.items()}
    more = sorted(name for name, (common, rare) in ends.items() if rare.interval(0.95)[0] > common.interval(0.95)[1])
    less = sorted(name for name, (common, rare) in ends.items() if rare.interval(0.95)[1] < common.interval(0.95)[0])
    memory = attacks.correlation(model="tree", random_state=0).details
    shown = ", ".join(f"{name} {_shown(common)} → {_shown(rare)}" for name, (common, rare) in ends.items())
    return record(
        "{count} attacks without a defence, most common tenth → rarest tenth: {shown}. The rarest are more exposed to "
        "{more_shown}; less to {less_shown}; elsewhere the 95 % intervals overlap. A tree that memorised doses, "
        "members minus non-members: {everybody}, in the rarest tenth {rarest}",
        count=len(ends),
        ends=ends,
        more=more,
        less=less,
        shown=shown,
        more_shown=", ".join(more) or "none",
        less_shown=", ".join(less) or "none",
        everybody=memory[BEYOND],
        rarest=memory[f"{BEYOND}, rarest tenth"],
    )


def _shown(share):
    low, high = share.interval()
    return f"{share.value:.0%} ({low:.0%} to {high:.0%})"
