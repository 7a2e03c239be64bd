"""The tour: what Discreet does, each thing shown by doing it. Every number is computed as you watch.

tour       the chapters in their order
recorder   what is said: to the terminal, and kept;  page: the same as one HTML file;  pictures: SVG
town       the made-up town;  copies: the same town under fresh ledgers;  tradeoff: the game that attackers play
asking, attack (with averaging), budget (with crash and its worker), kernel, learning, anonymity, local
           the chapters, each a function tell
"""
