"""The tour of discreet demo, on simulated data: chapters, the recorder of their output, and the page.

tour       the chapters in their order
recorder   prints to the terminal and keeps a copy;  page: the copy as one HTML file;  pictures: SVG
town       the simulated town;  copies: the same town with fresh ledgers;  tradeoff: the differencing game
asking, attack (with averaging), budget (with crash and its worker), kernel, learning, anonymity, local
           the chapters, each a function tell
"""
