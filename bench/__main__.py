"""Everything that is measured, one after the other: `make bench`."""

from bench import anonymity, learning, ledger, local, noise, queries, start

for part in (noise, ledger, start, learning, local, anonymity, queries):
    print(f"\n{part.__doc__.strip().splitlines()[0]}\n")
    part.main()
