"""The chapter on attacks: what someone who asks clever queries can infer about one person."""

from fractions import Fraction

import discreet as dc
from discreet.cli.tour import averaging
from discreet.cli.tour.pictures import add, draw_tradeoff
from discreet.cli.tour.recorder import Cell, Recorder, Words, good, warn
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import ILLS, SECRET, Town
from discreet.cli.tour.tradeoff import ONE, Played, counts, curve, is_ill, play, play_exact, point

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))


def tell(stage: Stage) -> None:
    """Attack the Governor's diagnosis: with non-private counts, with private ones, and by asking again and again."""
    recorder, town, plays, times = stage.recorder, stage.town, stage.sizes.plays, stage.sizes.times
    games = [stage.hands.submit(play, town, epsilon, plays) for epsilon in EPSILONS]
    again = stage.hands.submit(averaging.ask_again, town, times)
    others = stage.hands.submit(averaging.rephrase, town, times)
    _exact(recorder, town)
    recorder.title("The same two counts, private")
    recorder.say(
        f"The same two queries on {plays} copies of the town for each epsilon. In each copy, the toss of a coin "
        f"decides whether the Governor has {SECRET}. The attacker says yes if the two answers differ by 1 or more."
    )
    played = recorder.wait(games, "attacking copies of the town")
    _private(recorder, played, play_exact(town, plays))
    recorder.title("The trade-off between accuracy and privacy")
    caption = "A larger epsilon gives a smaller margin of error (left), and allows better attacks (right)."
    add(recorder, lambda: draw_tradeoff(recorder.folder, curve(), played), caption)
    averaging.tell_again(recorder, *recorder.wait([again], "repeating a query"))
    averaging.tell_rephrased(recorder, *recorder.wait([others], "rephrasing a query"))


def _exact(recorder: Recorder, town: Town) -> None:
    governor = town.governor()
    recorder.title("Differencing: two non-private counts and one diagnosis")
    recorder.say(
        f"The Governor is {governor.age} and lives in {governor.ward} ward, where, as everybody knows, nobody else is "
        f"{governor.age}. The Governor's diagnosis is in the column ill. For each illness, an attacker who gets "
        "non-private answers asks two queries:"
    )
    for sql in counts(governor):
        recorder.show(sql)
    rows, inferred = [], []
    for illness in ILLS:
        both = [town.truth(sql)[0][0] for sql in counts(governor, illness)]
        inferred += [illness] if is_ill(*both) else []
        rows.append((illness, *(f"{number:,}" for number in both), f"{both[0] - both[1]}"))
    recorder.table(("ill", "all residents", "without the Governor", "difference"), rows)
    truth = [ill for (ill,) in town.truth(f"SELECT ill FROM people WHERE {governor.condition}")]  # noqa: S608 - our own words
    verdict = warn("That is correct") if inferred == truth else good("That is wrong")
    recorder.say("The attacker infers: ", warn(" or ".join(inferred)), ". ", verdict, ".")


def _private(recorder: Recorder, played: list[Played], exact: Played) -> None:
    rows: list[tuple[Cell, ...]] = [("non-private", "± 0", warn(f"{exact.share:.1%}"), "", "")]
    for each in played:
        theory, half = point(float(each.epsilon)), dc.laplace_for(ONE, each.epsilon / 2)
        chances = (f"{theory.differencing:.1%}", f"{theory.ceiling:.1%}")
        correct = f"{each.share:.1%} ± {1.96 * each.error:.1%}"
        rows.append((f"epsilon {each.epsilon}", f"± {half.margin(0.95)}", good(correct), *chances))
    recorder.table(("both counts", "margin of each", "correct guesses", "in theory", "upper bound"), rows)
    recorder.say("Tossing a coin is right in 50 %. ", _verdict(played[0]), ". ", _against_bounds(played))


def _verdict(least: Played) -> Words:
    """Say whether the attack at the smallest epsilon did better than a coin: at 95 %, and by four standard errors."""
    excess = (least.share - 0.5) / least.error
    if excess <= 1.96:
        return good(f"At epsilon {least.epsilon} the attack is no better, up to sampling error")
    if excess <= 4:
        return warn(f"At epsilon {least.epsilon} the attack was right more often in this run; another run will tell")
    return warn(f"At epsilon {least.epsilon} the attack is better")


def _against_bounds(played: list[Played]) -> str:
    above = [each for each in played if each.share - 4 * each.error > point(float(each.epsilon)).ceiling]
    lucky = any(each.share > point(float(each.epsilon)).ceiling for each in played)
    bound = "The upper bound, e^epsilon / (1 + e^epsilon), holds for every attack, whatever the attacker knows"
    if above:
        return f"{bound}; here it was exceeded by more than sampling error explains, so something is wrong."
    return f"{bound}{' (a share above it is within sampling error)' if lucky else ''}."
