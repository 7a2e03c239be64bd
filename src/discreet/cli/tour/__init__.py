"""The tour of `discreet demo` on simulated data.

chapter_ask, _attack, _budget, _kernel, _learn, _anonymise, _local, _publish   the chapters, each with show_chapter
recorder           what every chapter needs: output to the terminal, a copy of it, workers;  page: the copy as HTML
curator_copies     the simulated town with fresh ledgers
differencing_game, crash_worker      parts of the chapters on attacks and budgets
"""
