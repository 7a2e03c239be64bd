"""Everything that is measured, one after the other: `make bench`."""

from bench import anonymity, attacks, audit, learning, ledger, local, membership, noise, queries, start

for part in (noise, ledger, start, learning, local, anonymity, queries, attacks, membership, audit):
    print(f"\n{part.__doc__.strip().splitlines()[0]}\n")
    part.main()
