"""The sentences and numbers that the page shows at one epsilon; the script copies them and computes none itself."""

from typing import Any

from discreet.answer.text import round_to_margin
from discreet.worlds.two_worlds.recording import Recording

_HASH = 12  # characters of a hash that are shown
_LEDGER_WORDS = (
    *("ledger_time", "ledger_seq", "ledger_hash", "ledger_previous", "mechanism", "spent"),
    *("settle_time", "settle_seq", "answer_hash"),
)


def step_words(recording: Recording, facts: dict[str, Any]) -> dict[str, str]:
    """Return the words of one step."""
    margin = round_to_margin(0.0, recording.margin)[1]
    return {
        "epsilon": facts["epsilon"],
        "spoken": f"epsilon {facts['epsilon']}: ± {margin} people, at most {facts['ceiling_odds']} right",
        "cost": f"epsilon {facts['epsilon']}, all of this budget",
        "margin": f"± {margin}",
        "use": _usefulness(recording.unreliable, len(recording.counts)),
        "most": facts["ceiling_odds"].removesuffix(" cases"),
        "ceiling": _percent(facts["ceiling"]),
        "with": f"{100 * facts['yes'][0]:.0f}",
        "without": f"{100 * facts['yes'][1]:.0f}",
        "right": _percent((facts["yes"][0] + 1 - facts["yes"][1]) / 2),
        "attack": _percent(facts["attack"]),
        "attacked": f"{100 * facts['attack']:.0f} of 100",
        "next": f"It is refused: “{recording.refusal}” Instead of one question, this epsilon also buys ten, each "
        f"with a margin of ± {round_to_margin(0.0, recording.split_margin)[1]}.",
        **_ledger_words(recording.ledger),
    }


def exact_words(counts: dict[str, int]) -> dict[str, str]:
    """Return the words of the last step, on which nothing is protected."""
    return dict.fromkeys(_LEDGER_WORDS, "-") | {
        "epsilon": "no noise",
        "spoken": "no noise: exact numbers, and everybody is right",
        "cost": "none is counted",
        "margin": "± 0",
        "use": f"All {len(counts)} numbers are exact.",
        "next": "It is answered as well, and so are all others: there is no budget that could end.",
        "most": "100 of 100",
        "ceiling": "100 %",
        "with": "100",
        "without": "0",
        "right": "100 %",
        "attack": "100 %",
        "attacked": "100 of 100",
    }


def _ledger_words(rows: tuple[dict[str, Any], ...]) -> dict[str, str]:
    charge, settle = rows
    return {
        "ledger_time": _clock(charge["time"]),
        "ledger_seq": str(charge["seq"]),
        "ledger_hash": charge["hash"][:_HASH],
        "ledger_previous": charge["previous"][:_HASH],
        "mechanism": charge["mechanism"],
        "spent": f"{charge['spent']} of {charge['spent']}",
        "settle_time": _clock(settle["time"]),
        "settle_seq": str(settle["seq"]),
        "answer_hash": settle["answer"][:_HASH],
    }


def _usefulness(unreliable: int, groups: int) -> str:
    if not unreliable:
        return f"Useful: in all {groups} wards the margin is below a quarter of the number."
    if unreliable == groups:
        return f"Not useful: in all {groups} wards the margin exceeds a quarter of the number."
    wards = "1 ward" if unreliable == 1 else f"{unreliable} wards"
    return f"Useful in part: in {wards} of {groups} the margin exceeds a quarter of the number."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _clock(time: str) -> str:
    return time[11:23]
