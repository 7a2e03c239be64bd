"""The row on who is most exposed: every attack tells success by tenths of rarity."""

from discreet import attacks
from discreet.attacks.laboratory import MODULES
from mission.rows import row

ONE_PERSON = {"threshold_game"}  # there are no others in it


@row("A15", "Who is most exposed: every attack tells success by tenths of rarity")
def a15():
    said = []
    for name in MODULES:
        if name in ONE_PERSON:
            continue
        exposure = getattr(attacks, name)(random_state=0).exposure
        said.append(f"{name} {exposure.deciles[0].value:.0%} → {exposure.deciles[-1].value:.0%}")
    return (
        f"{len(said)} attacks, most common tenth → rarest, without a defence: {', '.join(said)}; a tree that learned "
        f"doses by heart, members beyond strangers: {_memory()}"
    )


def _memory():
    details = attacks.correlation(model="tree", random_state=0).details
    everybody, rarest = (details[f"members beyond strangers{whose}"] for whose in ("", ", rarest tenth"))
    return f"{everybody}, in the rarest tenth {rarest}"
