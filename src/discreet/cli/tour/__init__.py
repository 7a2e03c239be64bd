"""The tour of `discreet demo` on simulated data.

chapter_ask, _attack, _budget, _kernel, _learn, _anonymise, _local, _publish   the chapters, each with show_chapter
context            what every chapter needs
recorder           prints to the terminal and keeps a copy;  page: the copy as one HTML file;  plot: its SVG plots
town               the simulated town;  curator_copies: the same town with fresh ledgers
differencing_game, averaging_attack, crash_worker                    parts of the chapters on attacks and budgets
"""
