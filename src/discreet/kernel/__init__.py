"""The trusted kernel.

errors, numbers            the exception tree; exact numbers, enclosures of exp and log
loss                       Loss and Budget: costs, composition and privacy filters
noise/                     exact integer noise from a cryptographic keystream
mechanism                  Sensitivity, Laplace, Gaussian
partition_selection        thresholds for groups found in the data
event, ledger/             records of charges, and the ledger: charge first, then settle, never refund
expr, grid                 row-wise expressions, and the public grid for sums
relation, question         the ownership algebra; totals by group with contribution bounds and a sensitivity
sqlgen/                    the engine's SELECTs, written from the algebra only
histogram_tree             noisy counts in a histogram tree, drawn for the nodes that are visited
selection                  exact choices by exponential weights: quantiles and the widths of their margins
fingerprint                fingerprints of totals
refinement                 less noise for an earlier answer
release                    charge, read, add noise, store, return
reservation, model_release noisy sums for models
"""
