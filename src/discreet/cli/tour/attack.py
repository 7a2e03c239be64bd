"""The chapter on attacks: what an attacker learns of one person who knows how to ask."""

from fractions import Fraction

import discreet as dc
from discreet.cli.tour import averaging
from discreet.cli.tour.pictures import add, draw_tradeoff
from discreet.cli.tour.recorder import Cell, Recorder, good, warn
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import ILLS, SECRET, Town
from discreet.cli.tour.tradeoff import ONE, Played, counts, curve, is_ill, play, play_exact, point

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))


def tell(stage: Stage) -> None:
    """Attack the Governor's secret: with exact counts, with private ones, and by asking again and again."""
    recorder, town, plays, times = stage.recorder, stage.town, stage.sizes.plays, stage.sizes.times
    games = [stage.hands.submit(play, town, epsilon, plays) for epsilon in EPSILONS]
    again = stage.hands.submit(averaging.ask_again, town, times)
    others = stage.hands.submit(averaging.rephrase, town, times)
    _exact(recorder, town)
    recorder.title("Two private counts are a coin toss")
    recorder.say(
        f"The same two questions, to {plays} copies of the town for each price. In every copy a coin decides whether "
        f"the Governor has {SECRET}; the attacker says yes if the difference is 1 or more."
    )
    played = recorder.wait(games, "guessing")
    _private(recorder, played, play_exact(town, plays))
    recorder.title("The trade-off")
    caption = "What a price buys: to those who ask, and to those who attack."
    add(recorder, lambda: draw_tradeoff(recorder.folder, curve(), played), caption)
    averaging.tell_again(recorder, *recorder.wait([again], "asking again"))
    averaging.tell_rephrased(recorder, *recorder.wait([others], "asking in other words"))


def _exact(recorder: Recorder, town: Town) -> None:
    governor = town.governor()
    recorder.title("Two exact counts give a secret away")
    recorder.say(
        f"The Governor is {governor.age} and lives in the ward {governor.ward}; nobody else there is as old, as "
        "everybody knows. What ails the Governor is in the column ill. Somebody who gets exact answers asks:"
    )
    for sql in counts(governor):
        recorder.show(sql)
    rows, found = [], ""
    for illness in ILLS:
        both = [town.truth(sql)[0][0] for sql in counts(governor, illness)]
        found = illness if is_ill(*both) else found
        rows.append((illness, *(f"{number:,}" for number in both), f"{both[0] - both[1]}"))
    recorder.table(("ill", "all", "without the Governor", "difference"), rows)
    ((truth,),) = town.truth(f"SELECT ill FROM people WHERE {governor.condition}")  # noqa: S608 - our own words
    verdict = "right" if found == truth else "wrong"
    recorder.say("So the Governor has: ", warn(found), f", for certain. That is {verdict}.")


def _private(recorder: Recorder, played: list[Played], exact: Played) -> None:
    rows: list[tuple[Cell, ...]] = [("exact", "± 0", warn(f"{exact.share:.1%}"), "", "")]
    for each in played:
        law, half = point(float(each.epsilon)), dc.laplace_for(ONE, each.epsilon / 2)
        chances = (f"{law.differencing:.1%}", f"{law.ceiling:.1%}")
        rows.append((f"epsilon {each.epsilon}", f"± {half.margin(0.95)}", good(f"{each.share:.1%}"), *chances))
    recorder.table(("price of both", "each count", f"right in {exact.plays}", "by the law", "ceiling"), rows)
    recorder.say(
        "A coin is right in 50 %. The ceiling e^epsilon / (1 + e^epsilon) holds for every attack, also of somebody who "
        "knows all other residents and has any computer; the owner chooses it with the budget."
    )
