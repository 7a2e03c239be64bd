"""Code of the trusted base is broken, one function at a time, and the seals alone must notice.

No other test is run: what is asked is whether a claim rests on the broken code, so that somebody has to read its proof
again. `python tools/claims.py unreached` lists the code on which none does.
"""

import ast
import random
from collections import Counter

import claims
import pytest
from code_definitions import FunctionNode, is_text
from code_objects import is_outside
from sealed_code import Seals, read_sealed_code
from trusted_base import TRUSTED_BASE, source_files

TARGET = 0.95
SEED = "discreet"
NEGATED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
NEGATED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}


def returns_nothing(function):
    """Replace the body by `pass`, so that None is returned; the docstring stays, and with it the claim."""
    function.body[is_text(function.body[0]) :] = [ast.Pass()]


def negates_comparison(function):
    """Negate the first comparison."""
    compared = next((node for node in ast.walk(function) if isinstance(node, ast.Compare)), None)
    if compared is None:
        return returns_nothing(function)
    compared.ops[0] = NEGATED[type(compared.ops[0])]()
    return None


def changes_constant(function):
    """Change the first number or text after the docstring."""
    body = function.body[is_text(function.body[0]) :]
    nodes = (node for statement in body for node in ast.walk(statement))
    constant = next((node for node in nodes if isinstance(node, ast.Constant) and type(node.value) in (int, str)), None)
    if constant is None:
        return returns_nothing(function)
    constant.value = constant.value + 1 if type(constant.value) is int else f"{constant.value} "
    return None


EDITS = (returns_nothing, negates_comparison, changes_constant)


@pytest.fixture(scope="module")
def code():
    return read_sealed_code()


@pytest.fixture(scope="module")
def functions(code):
    """The functions of the trusted base that are not exempt, with the path of their module."""
    exempt = {each for name in claims.exempt() if name in code.graph.definitions for each in code.graph.whole(name)}
    paths = {path.removesuffix("/__init__").replace("/", "."): path for path in source_files(TRUSTED_BASE)}
    return {
        name: paths[definition.module]
        for name, definition in code.graph.definitions.items()
        if isinstance(definition.node, FunctionNode)
        and not (definition.is_stub or code.graph.is_apart(name) or name in exempt)
    }


def broken(code, name, path, edit):
    """Return the code after one function is broken."""
    tree = ast.parse(code.graph.texts[path])
    line = code.graph.definitions[name].nodes[-1].lineno
    edit(next(node for node in ast.walk(tree) if isinstance(node, FunctionNode) and node.lineno == line))
    return code.with_text(path, ast.unparse(ast.fix_missing_locations(tree)))


def claims_to_read(code, name, path, edit):
    """Return the claims that the check lists for a broken function."""
    sealed = Seals(code.seals, code.hashes)
    return broken(code, name, path, edit).changes(sealed).get(f"{name} changed", [])


def test_a_broken_function_on_which_claims_rest_is_noticed_and_named(code, functions):
    chance = random.Random(SEED)
    reached = sorted(set(functions) & code.covered)
    for name in chance.sample(reached, 2):
        expected = sorted(claim for claim in code.claims if name in code.reach(claim))
        listed = claims_to_read(code, name, functions[name], chance.choice(EDITS[1:]))
        # A constant or a comparison may be the only thing in a function, which then returns nothing and reaches less.
        assert listed, name
        assert set(listed) <= set(expected)


def test_claims_rest_on_nearly_all_functions_of_the_trusted_base(code, functions):
    left = sorted(set(functions) - code.covered)
    print(*left, sep="\n")
    assert 1 - len(left) / len(functions) >= TARGET


@pytest.mark.long
def test_nearly_every_broken_function_is_noticed(code, functions):
    chance = random.Random(SEED)
    edits = {name: chance.choice(EDITS) for name in functions}
    unnoticed = [name for name, path in functions.items() if not claims_to_read(code, name, path, edits[name])]
    print(*unnoticed, sep="\n")
    print(Counter(name.rpartition(".")[0] for name in unnoticed).most_common())
    share = 1 - len(unnoticed) / len(functions)
    print(f"{share:.1%} of {len(functions)} broken functions are noticed")
    assert share >= TARGET


# What would break the guarantee most: a join on the unit that compares no units, two units taken for one, a sensitivity
# that is too small, a ledger that reads what was spent from its first row.
KNOWN_BREAKS = {
    "unit_equalities": "kernel.sqlgen",
    "_check_same_unit": "kernel.relation",
    "max_abs_contribution": "kernel.question",
    "last_row": "kernel.ledger",
}


@pytest.mark.parametrize("function", KNOWN_BREAKS)
def test_the_worst_breaks_are_noticed(code, functions, function):
    found = [
        name
        for name in functions
        if name.rpartition(".")[2] == function and name.startswith((KNOWN_BREAKS[function], "ledger_postgres."))
    ]
    if not found:
        pytest.skip(f"the kernel has no {function} any more")
    for name in found:
        assert claims_to_read(code, name, functions[name], returns_nothing), name


UNTRUSTED = {
    "policy.declarations": "the units as the owner declared them, compared with the policy file by tests/policy",
    "policy.model": "the same",
    "engines.reference.evaluate": "which letters LOWER and UPPER change; any function of one row keeps its owner",
}


def test_the_trusted_base_imports_nothing_else_of_the_project(code):
    imported = {
        (module.name, target)
        for module in code.graph.modules.values()
        for target in module.imports.values()
        if not code.graph.is_apart(module.name) and not is_outside(target)
    }
    left = {
        (module, target) for module, target in imported if code.graph.canonical(target) not in code.graph.definitions
    }
    packages = set(code.graph.modules) | {"ledger_postgres", "ledger_sqlite", "postgres", "kernel"}
    strangers = {(module, target) for module, target in left if not {target, target.rpartition(".")[0]} & packages}
    assert {target.rpartition(".")[0] for _, target in strangers} <= set(UNTRUSTED), strangers


def test_the_trusted_base_is_where_the_list_says():
    assert {path.partition("/")[0] for path in source_files(TRUSTED_BASE)} == {
        "kernel",
        "engines",
        "policy",
        "ledger_postgres",
        "ledger_sqlite",
        "postgres",
    }
    for patterns in TRUSTED_BASE.values():
        for pattern in patterns:
            assert source_files({"": (pattern,)}), pattern
