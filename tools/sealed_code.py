"""The claims with the code that they rest on: their seals, and what has changed since they were sealed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from claim_text import Claim, claim_of
from code_definitions import digest
from code_graph import CodeGraph
from trusted_base import APART, ROOT, TRUSTED_BASE, source_files


@dataclass(frozen=True)
class Seals:
    """What was sealed: the seal of each claim, and the hash of each definition that seals cover."""

    claims: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)


class SealedCode:
    """The claims of some code, and what each rests on."""

    def __init__(self, graph: CodeGraph) -> None:
        self.graph = graph
        found = map(claim_of, graph.definitions.values())
        self.claims: dict[str, Claim] = {claim.name: claim for claim in found if claim is not None}
        self._reach: dict[str, set[str]] = {}

    def with_text(self, path: str, text: str) -> "SealedCode":
        """Return the code after a change of one module."""
        return SealedCode(self.graph.with_text(path, text))

    def reach(self, name: str) -> set[str]:
        """Return the definitions that a claim rests on: its own, those under Needs, and all that they use."""
        if name not in self._reach:
            self._reach[name] = self.graph.reach(self.graph.whole(name), self._needed)
        return self._reach[name]

    @cached_property
    def _needed(self) -> dict[str, set[str]]:
        """The definitions that each claim names under Needs: whoever relies on the claim relies on them too."""
        needed = {}
        for claim in self.claims.values():
            words = claim.needs[0] | claim.needs[1]
            names = (name for word in words for name in self.definitions_called(word))
            needed[claim.name] = set(self.graph.seen_from(claim.name, names))
        return needed

    def definitions_called(self, word: str) -> set[str]:
        """Return the definitions that the end of a full name means: Loss.covers, covers, loss.Loss.covers."""
        owner, _, attribute = word.rpartition(".")
        found = {name for name in self._by_last.get(attribute, ()) if name == word or name.endswith(f".{word}")}
        for name in self.definitions_called(owner) if owner else ():
            if self.graph.definitions[name].is_class:  # a field, or a method that a base class has
                found |= self.graph.class_attribute(name, attribute) or set()
                found |= self.graph.implementations(name, attribute)
            else:  # a name for several classes
                found |= self.graph.alias_attribute(name, attribute)
        found = found or (set() if owner else self.graph.members.get(word, set()))  # a field of any class
        return {each for name in found for each in self.graph.whole(name)}

    @cached_property
    def _by_last(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = defaultdict(set)
        for definition in self.graph.definitions.values():
            names[definition.last].add(definition.name)
        return names

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of each definition."""
        return {name: each for module in self.graph.modules.values() for name, each in module.hashes.items()}

    @cached_property
    def covered(self) -> set[str]:
        """The definitions that at least one claim rests on."""
        return set().union(*map(self.reach, self.claims))

    @cached_property
    def seals(self) -> dict[str, str]:
        """The seal of each claim: a hash of the names and hashes of all that it rests on."""
        return {
            name: digest(f"{each} {self.hashes[each]}" for each in sorted(self.reach(name))) for name in self.claims
        }

    def stale(self, sealed: Seals) -> list[str]:
        """Return the claims whose seal is not that of their code; not those that were never sealed."""
        return sorted(name for name, seal in self.seals.items() if sealed.claims.get(name, seal) != seal)

    def changes(self, sealed: Seals) -> dict[str, list[str]]:
        """Return what has changed, each with the claims to read again."""
        changes: dict[str, list[str]] = defaultdict(list)
        gone = sorted(set(sealed.definitions) - set(self.hashes))
        left = sorted(name for name, old in sealed.definitions.items() if self.hashes.get(name, old) != old)
        for claim in self.stale(sealed):
            changed = [name for name in sorted(self.reach(claim)) if sealed.definitions.get(name) != self.hashes[name]]
            changed = changed or left  # code that a claim does not reach any more, because it changed
            words = [f"{name} {'changed' if name in sealed.definitions else 'is newly used'}" for name in changed]
            words = words or [f"{name} is gone" for name in gone] or ["Needs, or what a name means, changed"]
            for word in words:
                changes[word].append(claim)
        return dict(sorted(changes.items()))

    def sealed_again(self, sealed: Seals, names: Iterable[str]) -> Seals:
        """Return the seals with those of some claims renewed.

        The hash of a definition is renewed when no claim that rests on it is stale, so that until then the change can
        be named. Claims that are gone are dropped if they are among the names.
        """
        chosen = set(names)
        kept = {name: seal for name, seal in sealed.claims.items() if name not in chosen}
        claims = kept | {name: self.seals[name] for name in chosen & set(self.seals)}
        waiting = self.stale(Seals(claims))
        held = set().union(*map(self.reach, waiting))
        gone = set(sealed.definitions) - set(self.hashes) if waiting else set()
        old = {name: digest for name, digest in sealed.definitions.items() if name in held or name in gone}
        new = {name: self.hashes[name] for claim in claims if claim in self.claims for name in self.reach(claim) - held}
        return Seals(claims, old | new)


def read_sealed_code(root: Path = ROOT) -> SealedCode:
    """Return the code of the trusted base, and of the modules that make claims apart from it."""
    files = source_files(TRUSTED_BASE | APART, root)
    texts = {path: file.read_text(encoding="utf-8") for path, file in files.items()}
    return SealedCode(
        CodeGraph(
            texts, apart=tuple(f"{pattern.partition('/')[0]}." for patterns in APART.values() for pattern in patterns)
        )
    )
