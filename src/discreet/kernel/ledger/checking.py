"""Whether a ledger's tables are whole: rows and answers agree, and nothing of them was changed."""

from hashlib import sha256

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RESTORE, Chain, check_rows
from discreet.kernel.ledger.storage import Table


def check_table(table: Table) -> Chain:
    """Recompute every hash, total, state and answer, and return the chain; LedgerError names the first bad row.

    Claim: if nothing is raised, the rows are a whole chain, each answer is the one that was stored, none is missing.
    Proof: check_rows for the rows; each answer has the hash that its row names, and each settled row has one.
    Needs: check_rows; the end of the chain is vouched for by the head only.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found
    Seal: 70e105054651
    """
    chain = check_rows(table.rows())
    settled = dict(chain.settled)
    for receipt, answer in table.answers():
        seq, digest = settled.pop(receipt, (0, ""))
        if sha256(answer).hexdigest() != digest:
            what = f"row {seq}: its answer was changed" if seq else "an answer has no charge"
            raise LedgerError(what + RESTORE)
    for seq, _ in settled.values():
        raise LedgerError(f"row {seq}: its answer is missing{RESTORE}")
    return chain
