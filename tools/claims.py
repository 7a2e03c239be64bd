"""The claims of the trusted base and of the local model: find them, check them, seal them, print them.

    python tools/claims.py check              list what is wrong; exit code 1 if anything is
    python tools/claims.py seal NAME ...      renew the seals of these claims, after reading their proofs
    python tools/claims.py seal --all         renew all seals
    python tools/claims.py proofs             write docs/proofs.md
    python tools/claims.py needs              list the claims that code uses and that are not named under Needs
    python tools/claims.py unreached          list the code of the trusted base on which no claim rests

A claim is a docstring with the blocks Claim, Proof, Needs and Checked by; each begins a line, and its further lines are
indented. The seal of a claim is a hash of the code that the proof was written for: its function or class, what it names
under Needs, and all that these use within the trusted base, directly or not (code_graph.py). Seals are kept in
tools/seals.json, with the hash of every definition that they cover, so that a change can be named.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from claim_text import BLOCKS, Claim
from code_definitions import Definition, FunctionNode
from sealed_code import SealedCode, Seals, read_sealed_code
from trusted_base import ROOT

SEALS, EXEMPT, PAGE = Path("tools/seals.json"), Path("tools/unsealed.toml"), Path("docs/proofs.md")
# Public functions with these names promise something about privacy, so they must say what and why.
PROMISES = re.compile(r"loss|perturb|choose|charge|settle|covers|for_group|to_epsilon|verify|[a-z]\w*_for|zcdp_\w+")
RESEAL = "Read each proof against the code, then run `python tools/claims.py seal NAME ...`, or `seal --all`."
INTRODUCTION = """# Proofs

What the trusted base promises about privacy, and the randomizers of the local model after it, with the reason for each
promise. This page is generated from the docstrings by `python tools/claims.py proofs`; do not edit it by hand. A module
comes after those that it imports, so each proof needs only what stands above it, or beside it in the same module.

*Needs* names the functions and classes that the proof relies on. *Checked by* names the tests that would fail if the
claim were false. Each claim is sealed: when its code changes, or any code that it rests on, the checks fail until
somebody has read the proof again and renewed the seal."""


def problems(root: Path = ROOT) -> list[str]:
    """Return one line for each thing that is wrong with a claim or a seal."""
    code, sealed = read_sealed_code(root), read_seals(root)
    found = [f"{word}: re-read {', '.join(claims)}" for word, claims in code.changes(sealed).items()]
    unsealed = sorted(set(code.claims) - set(sealed.claims))
    found += [f"not sealed yet: read {', '.join(unsealed)}"] if unsealed else []
    found += [f"{name}: claims nothing any more" for name in sorted(set(sealed.claims) - set(code.claims))]
    found += [RESEAL] if found else []
    tests = test_names(root)
    for definition in code.graph.definitions.values():
        claim = code.claims.get(definition.name)
        if claim is not None:
            found += [f"{claim.name}: {problem}" for problem in _problems_of(claim, tests)]
            found += [f"{claim.name}: Needs names {word}, which does not exist" for word in _unknown(claim, code, root)]
        elif _must_claim(definition, code):
            found.append(f"{definition.name}: promises something about privacy by its name and has no Claim")
    found += _exemption_problems(code, root)
    if not (root / PAGE).exists() or (root / PAGE).read_text(encoding="utf-8") != proofs(root):
        found.append(f"{PAGE}: is out of date; run `python tools/claims.py proofs`")
    return found


def _problems_of(claim: Claim, tests: set[str]) -> list[str]:
    text = {name: claim.blocks.get(name, "") for name in BLOCKS}
    named = re.findall(r"\btest_\w+", text["Checked by"])
    found = [f"has no {name}" for name in BLOCKS if not text[name]]
    found += [f"has a {name}" for name in claim.blocks if name not in (*BLOCKS, "Seal")]
    found += [f"has a Seal, but seals are kept in {SEALS}; remove the line"] if "Seal" in claim.blocks else []
    found += [f"is checked by {name}, which does not exist" for name in named if name not in tests]
    found += ["is checked by no test"] if text["Checked by"] and not named else []
    return found


def _unknown(claim: Claim, code: SealedCode, root: Path) -> list[str]:
    """Return the names under Needs that mean nothing: neither in the sealed code, nor elsewhere in the project."""
    node = claim.definition.node
    parameters = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    unknown = [word for word in sorted(claim.needs[0] - parameters) if not code.definitions_called(word)]
    return [word for word in unknown if not _is_elsewhere(word, root)]


def _is_elsewhere(word: str, root: Path) -> bool:
    """Tell whether a dotted name is of the standard library, or of another module of the project."""
    module, *rest = word.split(".")
    path = root / "src" / "discreet" / module
    while rest and not path.with_suffix(".py").exists():
        path /= rest.pop(0)
    if path.with_suffix(".py").exists():
        text = path.with_suffix(".py").read_text(encoding="utf-8")
        return all(re.search(rf"\b(def|class) {name}\b", text) for name in rest)
    return module in sys.stdlib_module_names


def _must_claim(definition: Definition, code: SealedCode) -> bool:
    """Tell whether the name promises something; stubs of protocols and overloads have no code to prove."""
    if not isinstance(definition.node, FunctionNode) or not PROMISES.fullmatch(definition.last):
        return False
    owner = code.graph.definitions[definition.owner].node if definition.owner else None
    marks = [*definition.nodes[-1].decorator_list, *(owner.bases if isinstance(owner, ast.ClassDef) else [])]
    return not any(re.search(r"\b(overload|Protocol)\b", ast.unparse(mark)) for mark in marks)


def test_names(root: Path) -> set[str]:
    """Return the name of every test function under tests/."""
    texts = (path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py"))
    return {name for text in texts for name in re.findall(r"^\s*(?:async )?def (test_\w+)", text, re.MULTILINE)}


def exempt(root: Path = ROOT) -> dict[str, str]:
    """Return the code on which privacy does not rest, by name, with the reason; a name may be that of a whole class."""
    path = root / EXEMPT
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("unsealed", []) if path.exists() else []
    return {name: entry["reason"] for entry in entries for name in entry["names"]}


def _exemption_problems(code: SealedCode, root: Path) -> Iterator[str]:
    for name in exempt(root):
        if name not in code.graph.definitions:
            yield f"{EXEMPT}: {name} does not exist"
        elif code.graph.whole(name) <= code.covered:
            yield f"{EXEMPT}: a claim rests on {name}; remove the entry"


def unreached(code: SealedCode, root: Path = ROOT) -> list[str]:
    """Return the code of the trusted base on which no claim rests and that is not exempt; a stub has no code."""
    excused = {each for name in exempt(root) if name in code.graph.definitions for each in code.graph.whole(name)}
    left = set(code.graph.definitions) - code.covered - excused
    return sorted(name for name in left if not code.graph.is_apart(name) and not code.graph.definitions[name].is_stub)


def omitted_needs(code: SealedCode) -> dict[str, list[str]]:
    """Return, by claim, the claims that its code uses directly and that are not named under Needs."""
    found = {}
    for claim in code.claims.values():
        own, named = code.graph.whole(claim.name), {word.rpartition(".")[2] for word in claim.needs[0] | claim.needs[1]}
        used = {each for name in own for each in code.graph.uses(name)} & set(code.claims) - own
        omitted = sorted(each for each in used if each.rpartition(".")[2] not in named)
        if omitted:
            found[claim.name] = omitted
    return found


def read_seals(root: Path = ROOT) -> Seals:
    """Return the seals that were written last; none if there is no file."""
    path = root / SEALS
    return Seals(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Seals()


def seal(root: Path = ROOT, only: tuple[str, ...] = ()) -> list[str]:
    """Write the seals, of the claims named or of all, and return the names of those that changed."""
    code, sealed = read_sealed_code(root), read_seals(root)
    known = set(code.claims) | set(sealed.claims)
    if not known >= set(only):
        raise ValueError(f"no such claim: {', '.join(sorted(set(only) - known))}")
    renewed = code.sealed_again(sealed, only or known)
    (root / SEALS).parent.mkdir(exist_ok=True)
    text = json.dumps(asdict(renewed), indent=1, sort_keys=True)
    (root / SEALS).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return sorted(name for name in known if sealed.claims.get(name) != renewed.claims.get(name))


def proofs(root: Path = ROOT) -> str:
    """Return the page of all claims: modules in the order of their imports, claims in that of the text."""
    code, page = read_sealed_code(root), [INTRODUCTION]
    for module in _in_order_of_imports(code):
        claims = [code.claims[name] for name in code.graph.modules[module].definitions if name in code.claims]
        page += ["", f"## {module}"] if claims else []
        for claim in claims:
            page += ["", f"### `{_signature(claim.definition)}`"]
            for name in BLOCKS:
                page += ["", f"**{name}.** {_markdown(claim.blocks.get(name, ''))}"]
    return "\n".join(page) + "\n"


def _in_order_of_imports(code: SealedCode) -> list[str]:
    modules = code.graph.modules
    needs = {
        name: {each for full in module.imports.values() for each in (full, full.rpartition(".")[0]) if each in modules}
        for name, module in modules.items()
    }
    sorter = TopologicalSorter({name: needed - {name} for name, needed in needs.items()})
    try:
        sorter.prepare()
    except CycleError:
        return sorted(modules)
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return sorted(order, key=code.graph.is_apart)


def _signature(definition: Definition) -> str:
    name, node = definition.name.removeprefix(f"{definition.module}."), definition.nodes[-1]
    if not isinstance(node, FunctionNode):
        return f"class {name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({ast.unparse(node.args)}){returns}"


def _markdown(text: str) -> str:
    """Escape what Markdown would take for markup, outside of code; the names of tests are code."""
    pieces = re.split(r"(`[^`]*`)", re.sub(r"(?<!`)\btest_\w+", r"`\g<0>`", text))
    markup = r"[\\*\[]|<(?=[a-zA-Z/!])|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])"
    return "".join(p if p.startswith("`") else re.sub(markup, r"\\\g<0>", p) for p in pieces)


def _check(root: Path) -> int:
    found, code = problems(root), read_sealed_code(root)
    print(*found, f"{sum(line != RESEAL for line in found)} problems", sep="\n")
    print(f"{len(omitted_needs(code))} claims use others that they do not name under Needs (`needs` lists them)")
    return 1 if found else 0


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run one command and return its exit code."""
    match arguments:
        case ["check"]:
            return _check(root)
        case ["seal", "--all"]:
            print(*seal(root), sep="\n")
        case ["seal", name, *names]:
            try:
                print(*seal(root, (name, *names)), sep="\n")
            except ValueError as error:
                print(error, file=sys.stderr)
                return 2
        case ["proofs"]:
            (root / PAGE).parent.mkdir(exist_ok=True)
            (root / PAGE).write_text(proofs(root), encoding="utf-8", newline="\n")
        case ["needs"]:
            print(
                *(f"{name}: {', '.join(used)}" for name, used in omitted_needs(read_sealed_code(root)).items()),
                sep="\n",
            )
        case ["unreached"]:
            print(*unreached(read_sealed_code(root), root), sep="\n")
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
