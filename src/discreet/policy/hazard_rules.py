"""The rules of the policy lint: what may go wrong, and a hint. The ids never change."""

from dataclasses import dataclass

RULES = {
    "D001": (
        "the unit looks like a device, browser or visit, and one {who} may have several.",
        "Use the column that identifies the {who}, or set `protects` to what the unit really is.",
    ),
    "D002": (
        "the column appears to identify people but is not the unit, so those people are not protected.",
        "Remove the column, or make it the unit.",
    ),
    "D003": (
        "free text in a public table may name people.",
        "Remove the column, or list its values with `in`.",
    ),
    "D004": (
        "a number without bounds cannot be summed or averaged.",
        "Declare `between` from the meaning of the column, not from the data.",
    ),
    "D005": (
        "epsilon {epsilon} lets the odds about one {who} grow by a factor of e^{epsilon}.",
        "Consider a smaller budget: at epsilon 10, a belief of 1 % can already become 99.6 %.",
    ),
    "D006": (
        "delta {delta} is above {largest}: with this probability, someone's rows may be disclosed in full.",
        "Choose a delta far below one over the number of people.",
    ),
    "D007": (
        "each row is protected on its own: for k rows of one {who}, the bound is k times epsilon.",
        "Make the column that identifies the {who} the unit, unless nobody has more than one row.",
    ),
    "D008": (
        "{size} steps per row, times rows_max, may exceed 2^62, and sums of the column would be refused.",
        "Increase `step`, narrow `between`, or lower `rows_max` to a known limit on the table's rows.",
    ),
    "D009": (
        "the policy itself lists who may be in the data.",
        "Remove the domain: the unit column needs none.",
    ),
    "D010": (
        "no columns are listed, so every column of the source counts as public.",
        "List the columns that queries need.",
    ),
    "D011": (
        "each {window} is protected on its own: for a habit over k {window}s, the bound is k times epsilon.",
        "Remove `window` and `time` to protect each {who} as a whole.",
    ),
    "D012": (
        "each row belongs to the unit of the row in {parent} that it refers to; uniqueness is not checked.",
        "Make sure that no value of {key} in {parent} belongs to two units.",
    ),
    "D013": (
        "a public table appears to identify people.",
        "Give the table a unit, or remove the column.",
    ),
    "D014": (
        "a bound of `between` looks measured, and bounds taken from the data disclose its extremes.",
        "Choose round bounds from the meaning of the column.",
    ),
    "D015": (
        "{missing} not set: bounds per {who} are chosen automatically, for a part of the cost; quantiles are refused.",
        'Add `groups` and `rows`, or write "auto"; they affect accuracy, not privacy.',
    ),
    "D016": (
        "the noise of a sum grows with the range: about ±{margin} at epsilon 1.",
        "Narrow `between` to plausible values; the few values beyond it are clamped.",
    ),
    "D017": (
        "without a `step`, values are rounded to multiples of {step} before they are summed.",
        "Set a meaningful `step`, such as 1 or 0.01.",
    ),
    "D018": (
        "the list of {count} values looks taken from the data, so the policy may disclose the value of one {who}.",
        "List the possible values from their meaning, refer to a public table (`references`), or remove `in`.",
    ),
    "D019": (
        'the policy {other} uses the same ledger for another data set, "{name}".',
        "If both are about the same people, give both the same `population`; otherwise each its own `ledger`.",
    ),
    "D020": (
        "other accounts on this machine can {act} the ledger's folder.",
        "Keep the ledger in a folder that only you can enter (chmod 700).",
    ),
    "D021": (
        "other accounts on this machine can read the source and bypass this policy.",
        "Keep it in a folder that only you can enter (chmod 700), or remove their read permission (chmod 600).",
    ),
    "D022": (
        "there is no file at the source, {source}, so its columns were not checked.",
        "Correct `source`, or put the file there.",
    ),
    "D023": (
        "a date or time without bounds can be grouped by day or month only with partition selection.",
        "Declare `between` from the period that the data are meant to cover.",
    ),
    "D024": (
        "a comment still asks for a decision ({lines}).",
        "Decide, then remove FILL IN from the comment.",
    ),
    "D025": (
        "it is stored as {stored} but read as {read}, so {lost} becomes NULL.",
        "Check that all values can be converted, or store the column as {read}.",
    ),
    "D026": (
        "the database role can do more than read. It can {can}.",
        "Use a role with fewer privileges: {sql}",
    ),
    "D027": (
        "{hidden}.",
        "Give the role a row-level security policy that shows all rows, unless this is intended.",
    ),
    "D028": (
        "{share} of the values become NULL: each must be {form}.",
        "Write them in this form in the file, or correct `type`.",
    ),
    "D029": (
        "{share} of the rows are left out of every answer: the unit must be {form}, and not missing.",
        "Enter to whom they belong, or correct `type`, unless they belong to nobody.",
    ),
}


@dataclass(frozen=True)
class Hazard:
    """A lint finding: a stable id, its place, what may go wrong, and a hint."""

    id: str
    table: str | None
    column: str | None
    message: str
    hint: str
    section: str = "[budget]"

    @property
    def location(self) -> str:
        """The section, table or column of the policy."""
        if self.table is None:
            return self.section
        return f"table {self.table}" + (f", column {self.column}" if self.column else "")

    def __str__(self) -> str:
        """Format the finding on one line."""
        return f"{self.id} {self.location}: {self.message} {self.hint}"


def make_hazard(
    id_: str, table: str | None = None, column: str | None = None, section: str = "[budget]", **values: object
) -> Hazard:
    """Return a rule's finding, with `values` filled into its message and hint."""
    message, hint = (text.format(**values) for text in RULES[id_])
    return Hazard(id_, table, column, message, hint, section)
