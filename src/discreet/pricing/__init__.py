"""What a question costs, given what the ledger remembers: nothing again, and for more exactness the difference.

draws      earlier draws of the same totals: the same rows, groups and limits, of the same version, whoever asked
combining  makes one table of several draws
owing      says what has to be drawn anew for a price, and what that costs
foresight  how exact a column will be, before anything is asked
accuracy   from margins to the least price
asked      what was asked for, in whatever way it was said;  record: how the ledger keeps it
"""

from discreet.pricing.accuracy import Margins
from discreet.pricing.asked import Offer, Wanted, in_words, kind_for, offered, state_of, too_dear, wanted, what_fits
from discreet.pricing.combining import Piece, Table, price_of_all, table_of
from discreet.pricing.draws import Known, recall
from discreet.pricing.foresight import by_size
from discreet.pricing.owing import Due, due
from discreet.pricing.record import said_of, text_of, with_key

__all__ = [
    "Due",
    "Known",
    "Margins",
    "Offer",
    "Piece",
    "Table",
    "Wanted",
    "by_size",
    "due",
    "in_words",
    "kind_for",
    "offered",
    "price_of_all",
    "recall",
    "said_of",
    "state_of",
    "table_of",
    "text_of",
    "too_dear",
    "wanted",
    "what_fits",
    "with_key",
]
