"""The text of a claim: its blocks, and the names under Needs."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property

from code_definitions import Definition, DefinitionNode, is_text

BLOCKS = ("Claim", "Proof", "Needs", "Checked by")
_BEGINS = re.compile(rf"({'|'.join((*BLOCKS, 'Seal'))}):\s*(.*)")
_NAME = r"[A-Za-z_]\w*(?:\.\w+)*"


@dataclass(frozen=True)
class Claim:
    """A definition whose docstring claims something."""

    definition: Definition
    doc: str

    @property
    def name(self) -> str:
        """The name of the definition."""
        return self.definition.name

    @cached_property
    def blocks(self) -> dict[str, str]:
        """The text of each block; one that occurs twice is also there as "second Proof"."""
        first, *rest = self.doc.expandtabs().split("\n")
        margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
        found: dict[str, str] = {}
        current = None
        for line in [first.strip(), *(line[margin:].rstrip() for line in rest)]:
            begins = _BEGINS.match(line)
            if begins:
                current = begins[1] if begins[1] not in found else f"second {begins[1]}"
                found[current] = begins[2]
            elif line and not line.startswith(" "):
                current = None
            elif line and current:
                space = "" if re.search(r"(^|\w-)$", found[current]) else " "
                found[current] += space + line.strip()
        return found

    @cached_property
    def needs(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names under Needs that must exist, and those that may.

        In a list between semicolons every word must be a name; in a sentence, words with a dot or an underscore must,
        and capitalised ones and those that stand alone between commas may. What stands in backquotes may be anything,
        such as a parameter or a setting of a server.
        """
        must, may = set(), set()
        for clause in self.blocks.get("Needs", "").removesuffix(".").split(";"):
            items = [item.strip().removesuffix("()") for item in re.split(r",|\band\b", clause)]
            alone = {item for item in items if re.fullmatch(_NAME, item)}
            if len(alone) == len(items):
                must |= alone
                continue
            quoted = {word for word in re.findall(rf"`({_NAME})", clause) if _looks_like_name(word)}
            words = re.findall(rf"(?<![\w'-]){_NAME}", re.sub(r"`[^`]*`", "", clause))
            must |= set(filter(_looks_like_name, words))
            may |= alone | quoted | {word for word in words if word[0].isupper()}
        return frozenset(must - {"nothing"}), frozenset(may - must)


def _looks_like_name(word: str) -> bool:
    parts = word.strip("_").split(".")
    return ("_" in word or len(parts) > 1) and len(max(parts, key=len)) > 1  # "e.g" does not


def claim_of(definition: Definition) -> Claim | None:
    """Return the claim of a definition, well formed or not; None if it claims nothing."""
    for node in definition.nodes:
        if isinstance(node, DefinitionNode) and node.body and is_text(node.body[0]):
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            assert isinstance(first.value, ast.Constant)
            if isinstance(first.value.value, str) and "Claim:" in first.value.value:
                return Claim(definition, first.value.value)
    return None
