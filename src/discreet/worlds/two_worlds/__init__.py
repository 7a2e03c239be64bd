"""One question, two worlds: what an analyst gets and what an outsider can infer, at every epsilon, on one page.

rounded_counts   the exact distribution of a released count
residents        whom the page protects: residents of the simulated town whom anybody can recognise
recording        what the real curator answered, charged and wrote to its ledger
record           all of it as plain data, for JSON
page             the page as one HTML file
"""
