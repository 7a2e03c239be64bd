"""Private estimators in scikit-learn's shape: they see data only through noisy sums that were paid for.

Imported when it is first used; it needs scikit-learn (`pip install discreet[learn]`).
"""

from discreet.learn.scaler import StandardScaler

__all__ = ["StandardScaler"]
