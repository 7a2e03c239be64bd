"""The trusted part: small enough to read in an afternoon, and the only part that privacy depends on.

errors      what can go wrong
exact       reading numbers exactly; enclosing exp and ln between integers
loss        Loss, Budget: what a release costs and when to stop
noise       exact integer noise from a cryptographic keystream
mechanism   Sensitivity; Laplace, Gaussian, Exponential, …: this noise, this sensitivity, this loss
event       what was done, as data
ledger      charge first, settle afterwards, never refund
"""
