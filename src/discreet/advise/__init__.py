"""Charged help with the numbers that an owner must choose: contribution bounds, ranges of columns, and bins.

value_cells    public cells for the values of a column
value_range    the range of a column, chosen from noisy counts by cell
advice_plan    what advice is asked for, and its cost, before anything is charged
give_advice    the histograms, released one after the other
advice         the numbers that were chosen, as records
policy_lines   the same as lines for the policy
advice_text    the same in words
advice_plot    the same as pictures
"""

from discreet.advise.advice import Advice, BoundsAdvice, RangeAdvice
from discreet.advise.advice_plan import AdvicePlan

__all__ = ["Advice", "AdvicePlan", "BoundsAdvice", "RangeAdvice"]
