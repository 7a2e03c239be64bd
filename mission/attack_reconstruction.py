"""The rows on reconstruction from subset sums and from tables of small areas."""

from discreet import attacks
from mission.data import real
from mission.rows import listed, rate_of, record, row

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
    rarest = [result.exposure.deciles[-1].value for result in tables]
    return record(
        "marital status of {people:,} Californians reconstructed from {questions:,} counts: {exact}, from counts "
        "rounded to tens {rounded}, from the curator at epsilon 1 {private} (guessing: {guessing:.1%}); people in "
        "{blocks} blocks reconstructed with all attributes from two-way tables: {rebuilt} ({outside:.0%} of equal "
        "non-members), with cells of 1 and 2 suppressed {suppressed}, from the curator's tables "
        "{hidden} ({hidden_outside:.0%}); of the rarest tenth {shown}",
        people=len(married.bits),
        questions=counts[0].details["questions"],
        exact=exact,
        rounded=rounded,
        private=private,
        guessing=counts[2].baseline,
        blocks=blocks.block_count,
        rebuilt=rebuilt,
        outside=tables[0].baseline,
        suppressed=suppressed,
        hidden=hidden,
        hidden_outside=tables[2].baseline,
        rarest=rarest,
        shown=listed(rarest, ".0%"),
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


MEMBERS, OUTSIDE, BITS = "true positive rate", "false positive rate", "bits reconstructed correctly"


@row("D3", "Membership from reconstruction, and reconstruction from membership")
def d3():
    against = (AGAINST[0], AGAINST[2])
    one = [attacks.membership_from_reconstruction(random_state=0, **each) for each in against]
    two = [attacks.reconstruction_from_membership(random_state=0, **each) for each in against]
    exact, private = (result.details for result in one)
    means, noisy = (result.details for result in two)
    return record(
        "a reconstruction with {bits:.1%} correct bits finds {found:.1%} of the members, with {taken:.1%} false "
        "positives; a membership test with {tested:.1%} true and {tested_outside:.1%} false positives reconstructs "
        "{rebuilt:.1%} of the bits correctly and {wrong:.1%} wrongly; at epsilon 1: {private_bits:.1%} correct bits, "
        "members found {private_one}; {private_tested:.1%} true and {private_outside:.1%} false positives, correct "
        "bits {private_two}",
        bits=exact[BITS],
        found=exact[MEMBERS],
        taken=exact[OUTSIDE],
        tested=means[MEMBERS],
        tested_outside=means[OUTSIDE],
        rebuilt=means["bit right"],
        wrong=means["bit wrong"],
        private_bits=private[BITS],
        private_one=rate_of(one[1]),
        private_tested=noisy[MEMBERS],
        private_outside=noisy[OUTSIDE],
        private_two=rate_of(two[1]),
    )
