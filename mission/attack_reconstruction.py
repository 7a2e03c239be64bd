"""The rows on reconstruction from subset sums and from tables of small areas."""

from discreet import attacks
from mission.data import real
from mission.rows import outside_of, rate, rate_of, record, row, share_of

LEVELS = {"1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1, "8": 8}
AGAINST = ({"defence": "nothing"}, {"defence": "easy"}, {"defence": "curator", "epsilon": 1})


@row(
    "A7",
    "Reconstruction from aggregates: a secret from counts of random groups, and people from tables of small blocks",
)
def a7():
    married, blocks = real("reconstruct"), real("census")
    counts = [attacks.reconstruct(married, random_state=0, **defence) for defence in AGAINST]
    tables = [attacks.census(blocks, random_state=0, **defence) for defence in AGAINST]
    exact, rounded, private = map(rate_of, counts)
    rebuilt, suppressed, hidden = map(rate_of, tables)
    rarest = [rate(each.hits, each.trials) for each in (result.exposure.deciles[-1] for result in tables)]
    return record(
        "marital status of {people:,} Californians reconstructed from {questions:,} counts: {exact}, from counts "
        "rounded to tens {rounded}, from the curator at epsilon 1 {private} (guessing: {guessing:.1%}); people in "
        "{blocks} blocks reconstructed with all attributes from two-way tables: {rebuilt} (equal "
        "non-members: {outside}), with cells of 1 and 2 suppressed {suppressed}, from the curator's tables "
        "{hidden} (equal non-members: {hidden_outside}); of the rarest tenth {shown}",
        people=len(married.bits),
        questions=counts[0].details["questions"],
        exact=exact,
        rounded=rounded,
        private=private,
        guessing=counts[2].baseline,
        blocks=blocks.block_count,
        rebuilt=rebuilt,
        outside=outside_of(tables[0]),
        suppressed=suppressed,
        hidden=hidden,
        hidden_outside=outside_of(tables[2]),
        rarest=rarest,
        shown=" / ".join(map(str, rarest)),
    )


@row("D2", "Reconstruction from 4n noisy subset sums, by least squares and by a linear programme")
def d2():
    people, fewer = (attacks.Secrets.simulate(n, random_state=0) for n in (1024, 256))
    found = {name: attacks.reconstruct(people, noise=noise, random_state=0) for name, noise in LEVELS.items()}
    rates = {name: rate_of(each) for name, each in found.items()}
    programme = attacks.reconstruct(fewer, noise=1 / 4, method="linear programme", random_state=0)
    private = attacks.reconstruct(people, defence="curator", epsilon=1, random_state=0)
    return record(
        "n = 1,024, correct bits by noise in units of 1/sqrt(n): {shown}; linear programme, n = 256: {programme} at "
        "1/4; private sums at epsilon 1 (error {error:,.0f}/sqrt(n)): {private}",
        rates=rates,
        programme=rate_of(programme),
        private=rate_of(private),
        error=private.details["error of a share, in units of 1/sqrt(n)"],
        shown=", ".join(f"{each} at {name}" for name, each in rates.items()),
    )


OTHERS = 4  # non-members per member in the simulated study
MEMBERS, OUTSIDE, BITS = "true positive rate", "false positive rate", "bits reconstructed correctly"


@row("D3", "Membership from reconstruction, and reconstruction from membership")
def d3():
    against = (AGAINST[0], AGAINST[2])
    one = [attacks.membership_from_reconstruction(random_state=0, **each) for each in against]
    two = [attacks.reconstruction_from_membership(random_state=0, **each) for each in against]
    people = sum(decile.trials for decile in two[0].exposure.deciles)
    bits, private_bits = (share_of(result.details[BITS], _trials(result)) for result in one)
    tests = [
        (share_of(result.details[MEMBERS], people), share_of(result.details[OUTSIDE], OTHERS * people))
        for result in two
    ]
    (tested, tested_outside), (private_tested, private_outside) = tests
    return record(
        "a reconstruction with {bits} correct bits finds {found} of the members, with {taken} false positives; a "
        "membership test with {tested} true and {tested_outside} false positives reconstructs {rebuilt} of the bits "
        "correctly and {wrong} wrongly; at epsilon 1: {private_bits} correct bits, members found {private_one}; "
        "{private_tested} true and {private_outside} false positives, correct bits {private_two}",
        bits=bits,
        found=rate_of(one[0]),
        taken=outside_of(one[0]),
        tested=tested,
        tested_outside=tested_outside,
        rebuilt=share_of(two[0].details["bit right"], people),
        wrong=share_of(two[0].details["bit wrong"], people),
        private_bits=private_bits,
        private_one=rate_of(one[1]),
        private_tested=private_tested,
        private_outside=private_outside,
        private_two=rate_of(two[1]),
    )


def _trials(result):
    return result.evidence.members.trials + result.evidence.non_members.trials
