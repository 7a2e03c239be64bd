"""The rows on reconstruction: what sums over subsets and tables of small areas give away, and what they do not."""

import time

from discreet import attacks
from discreet.attacks.aggregates import census, reconstruct, reductions
from mission.anonymity import DATA
from mission.rows import NeedsDataError, row

LEVELS = (1 / 8, 1 / 4, 1 / 2, 1)


@row(
    "A7",
    "Reconstruction from aggregates: a secret from counts of random groups, and people from tables of small blocks",
)
def a7():
    married, blocks = (_loaded(attack) for attack in (reconstruct.ATTACK, census.ATTACK))
    counts = [_played(attacks.reconstruct, married, *against) for against in (("nothing",), ("easy",), ("curator", 1))]
    tables = [_played(census.census, blocks, *against) for against in (("nothing",), ("easy",), ("curator", 1))]
    rarest = [result.exposure.deciles[-1].value for result in tables]
    return (
        f"who is married of {len(married.bits):,} Californians, from {counts[0].details['questions']:,} counts: "
        f"{counts[0].success:.1%} right, {counts[1].success:.1%} if they are rounded to tens, {counts[2].success:.1%} "
        f"from the curator at epsilon 1 (guessing: {counts[2].baseline:.1%}); people in {blocks.count} blocks from "
        "tables of every two traits: "
        f"{tables[0].success:.0%} rebuilt with all traits ({tables[0].baseline:.0%} of equal strangers), "
        f"{tables[1].success:.0%} without cells of 1 and 2, {tables[2].success:.0%} ({tables[2].baseline:.0%}) from "
        f"the curator's; of the rarest tenth {rarest[0]:.0%}, {rarest[1]:.0%}, {rarest[2]:.0%}"
    )


def _loaded(attack):
    if not (DATA / attack.files[0]).exists():
        raise NeedsDataError(f"{attack.files[0].removesuffix('.parquet')} in DISCREET_DATA")
    return attack.load(DATA)


def _played(attack, data, defence, epsilon=None):
    return attack(data, defence=defence, epsilon=epsilon, random_state=0)


@row("D2", "Reconstruction from 4n noisy subset sums, by least squares and by a linear programme")
def d2():
    people, fewer = (reconstruct.Secrets.drawn(n, random_state=0) for n in (2048, 256))
    began = time.perf_counter()
    shares = [attacks.reconstruct(people, noise=noise, random_state=0).success for noise in LEVELS]
    seconds = (time.perf_counter() - began) / len(LEVELS)
    beyond = attacks.reconstruct(people, noise=8, random_state=0).success
    began = time.perf_counter()
    programme = attacks.reconstruct(fewer, noise=1 / 4, method="linear programme", random_state=0).success
    programme_seconds = time.perf_counter() - began
    private = attacks.reconstruct(people, defence="curator", epsilon=1, random_state=0)
    error = private.details["error of a share, in units of 1/sqrt(n)"]
    return (
        f"{' / '.join(f'{share:.3f}' for share in shares)} of the bits at noise 1/8, 1/4, 1/2, 1 times 1/sqrt(n), "
        f"{beyond:.3f} at 8 times (n = 2,048, {seconds:.1f} s each); linear programme {programme:.3f} at 1/4 (n = 256, "
        f"{programme_seconds:.1f} s); private sums at epsilon 1, which are {error:,.0f} times 1/sqrt(n) off: "
        f"{private.success:.3f}"
    )


@row("D3", "Membership from reconstruction, and reconstruction from membership")
def d3():
    one = [reductions.membership_from_reconstruction(random_state=0, **against) for against in _AGAINST]
    two = [reductions.reconstruction_from_membership(random_state=0, **against) for against in _AGAINST]
    exact, private = (result.details for result in one)
    means, private_means = (result.details for result in two)
    return (
        f"a reconstruction with {exact['bits right in the reconstruction']:.1%} of the bits right tells "
        f"{exact['members found']:.1%} of the members and takes {exact['strangers taken for members']:.1%} of "
        f"strangers for members; a test that finds {means['members found']:.1%} of members (strangers: "
        f"{means['strangers taken for members']:.1%}) rebuilds {means['bit right']:.1%} of the bits, "
        f"{means['bit wrong']:.1%} wrongly; at epsilon 1 both end together: "
        f"{private['bits right in the reconstruction']:.1%} right, {private['members found']:.1%} of members to "
        f"{private['strangers taken for members']:.1%} of strangers; {private_means['members found']:.1%} to "
        f"{private_means['strangers taken for members']:.1%}, {two[1].success:.1%} of the bits right"
    )


_AGAINST = ({"defence": "nothing"}, {"defence": "curator", "epsilon": 1})
