"""Synthetic rows: a graphical model of noisy tables on a junction tree, in numpy.

    release_schedule   the releases and their shares of the budget, fixed before data is read
    Measurer           what the caller provides: each call is the next release of the schedule
    synthesise         measures single columns, then the pairs that the model lacks most, and fits it
    RowModel           expected tables, synthetic rows, and a quality report from paid distances

It sees the data through the measurer only, so whatever it does is post-processing of what was released.
"""

from discreet.publish.synthesis.junction_tree import Columns
from discreet.publish.synthesis.quality import PairQuality, QualityReport
from discreet.publish.synthesis.row_model import RowModel, synthesise
from discreet.publish.synthesis.schedule import Measurer, ScheduledRelease, SynthesisSettings, release_schedule

__all__ = [
    "Columns",
    "Measurer",
    "PairQuality",
    "QualityReport",
    "RowModel",
    "ScheduledRelease",
    "SynthesisSettings",
    "release_schedule",
    "synthesise",
]
