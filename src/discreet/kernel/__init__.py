"""The trusted part: small enough to read in an afternoon, and the only part that privacy depends on.

errors      what can go wrong
exact       reading numbers exactly; enclosing exp and ln between integers
loss        Loss, Budget: what a release costs and when to stop
noise       exact integer noise from a cryptographic keystream
mechanism   Sensitivity; Laplace, Gaussian, Exponential, …: this noise, this sensitivity, this loss
event       what was done, as data
ledger      charge first, settle afterwards, never refund
expr, grid  what can be computed from one row, and the grid that numbers are summed on
relation    rows that one unit owns, and the only ways to make others of them;  fold: a unit's rows become one value
totals      what is counted or summed;  question: by groups, with bounds for each unit, hence a sensitivity
writing     the engine's SQL, from these alone;  render, gather: of a question;  dialect: DuckDB's words
tree        noisy counts in a tree of cells, drawn where somebody looks
topic       the name under which an answer is found again;  stored: how it is kept
refine      a finer draw given a coarser one;  earlier: the draw that is made finer
release     pay, read, add noise, store, show: the door
"""
