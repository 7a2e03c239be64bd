"""The rules of the policy lint: what may go wrong, and a hint. The ids never change."""

from dataclasses import dataclass

RULES = {
    "D001": (
        "the unit looks like a device, browser or visit, and one {who} may have several.",
        "Name the column of the {who}, or say in `protects` what is protected.",
    ),
    "D002": (
        "the column seems to hold people, and it is not the unit: nobody is protected as one of its values.",
        "Leave the column out, or make it the unit.",
    ),
    "D003": (
        "free text in a public table may name people.",
        "Leave the column out, or list its values with `in`.",
    ),
    "D004": (
        "a number without bounds cannot be summed or averaged.",
        "Declare `between` from what the number means, not from the data.",
    ),
    "D005": (
        "epsilon {epsilon} lets the odds about one {who} grow by a factor of e^{epsilon}.",
        "Ask how little would do: at 10 a belief of 1 % may already become 99.6 %.",
    ),
    "D006": (
        "delta {delta} is above {largest}: somebody's rows could be told in full with that probability.",
        "Choose a delta far below one over the number of people.",
    ),
    "D007": (
        "each row is protected alone: k rows of one {who} together have k times the epsilon against them.",
        "Name the column of the {who} as unit, unless nobody has two rows.",
    ),
    "D008": (
        "{size} steps in a row, times rows_max, may exceed 2^62, and sums of it would be refused.",
        "Enlarge `step`, narrow `between`, or lower `rows_max` to what is known of the table.",
    ),
    "D009": (
        "the policy itself lists who may be in the data.",
        "Leave out the domain: the unit's column needs none.",
    ),
    "D010": (
        "no columns are listed, so everything in the source counts as public.",
        "List the columns that questions need.",
    ),
    "D011": (
        "each {window} is protected alone: a habit over k of them has k times the epsilon against it.",
        "Leave out `window` and `time` to protect each {who} as a whole.",
    ),
    "D012": (
        "a row belongs to the owner of the row in {parent} that it leads to; nothing checks that there is only one.",
        "Make sure that no value of {key} in {parent} occurs for two owners.",
    ),
    "D013": (
        "a public table seems to hold people.",
        "Give the table a unit, or leave the column out.",
    ),
    "D014": (
        "an end of `between` looks measured, and bounds taken from the data tell about its extremes.",
        "Choose round bounds from what the number means.",
    ),
    "D015": (
        "{missing} not set, so every question must say how much of one {who} it holds, and some programs cannot.",
        "Add `groups` and `rows`; they decide about accuracy, not about privacy.",
    ),
    "D016": (
        "the noise of a sum follows the range: about ±{margin} at epsilon 1.",
        "Narrow `between` to what is plausible; the few values beyond it are moved to its ends.",
    ),
    "D017": (
        "without a `step`, values are rounded to multiples of {step} before they are added up.",
        "Name a `step` that means something, such as 1 or 0.01.",
    ),
    "D018": (
        "the list of {count} values looks taken from the data, and the policy would tell a value that one {who} has.",
        "List what may occur from its meaning, keep a long list in a public table (`references`), or leave out `in`.",
    ),
    "D019": (
        'the policy {other} has the same ledger for another data set, "{name}".',
        "Give each data set a `ledger` of its own.",
    ),
    "D020": (
        "other accounts of this machine can {act} the ledger's folder.",
        "Keep the ledger where only you may enter (chmod 700).",
    ),
    "D021": (
        "other accounts of this machine can read the source, past all that is promised here.",
        "Keep it where only you may enter (chmod 700), or take their permission away (chmod 600).",
    ),
    "D022": (
        "there is no file at its source, {source}: whether the columns are there and fit is not known.",
        "Correct `source`, or bring the file there.",
    ),
    "D023": (
        "a time without bounds cannot be grouped by day or month, unless groups are discovered.",
        "Declare `between` from the period that the data are meant to cover.",
    ),
    "D024": (
        "a comment still asks for a decision ({lines}).",
        "Decide, and take the mark out of the comment.",
    ),
    "D025": (
        "it is stored as {stored} and read as {read}: {lost} counts as NULL.",
        "Look whether all of it can be read, or store it as {read}.",
    ),
    "D026": (
        "the role that asks the database can do more than read. It can {can}.",
        "Use a role that can do no more: {sql}",
    ),
    "D027": (
        "{hidden}.",
        "Give the role a policy of PostgreSQL that shows all rows, unless that is meant.",
    ),
}


@dataclass(frozen=True)
class Hazard:
    """Something to ask the owner about: a stable id, the place, what may go wrong, and what to do."""

    id: str
    table: str | None
    column: str | None
    message: str
    hint: str
    section: str = "[budget]"

    @property
    def location(self) -> str:
        """Where in the policy it is."""
        if self.table is None:
            return self.section
        return f"table {self.table}" + (f", column {self.column}" if self.column else "")

    def __str__(self) -> str:
        """Write the finding on one line."""
        return f"{self.id} {self.location}: {self.message} {self.hint}"


def make_hazard(
    id_: str, table: str | None = None, column: str | None = None, section: str = "[budget]", **values: object
) -> Hazard:
    """Return the finding of a rule, with its words filled in."""
    message, hint = (text.format(**values) for text in RULES[id_])
    return Hazard(id_, table, column, message, hint, section)
