"""What a piece of code uses: too much rather than too little, and not everything."""

import textwrap

import pytest
from code_graph import CodeGraph

CLASSES = """
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import contextmanager
    from dataclasses import dataclass, replace
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")


    class Laplace:
        scale: int

        def loss(self) -> int: return self.scale
        def twice(self) -> "Laplace": return self
        @property
        def inner(self) -> "Gaussian": return Gaussian()


    class Gaussian:
        def __init__(self): self.variance, self.source = 1, Laplace()
        def loss(self) -> int: return 1
        def __add__(self, other): return self


    class Wider(Gaussian):
        def loss(self) -> int: return 2


    class Ledger(Protocol):
        def charge(self) -> int: ...


    class Account:
        def charge(self) -> int: return 3


    @dataclass
    class Pair:
        left: Laplace
        right: "Gaussian"
        many: tuple[Laplace, ...] = ()
        named: tuple[tuple[str, Laplace], ...] = ()


    Noise = Laplace | Gaussian
    Many = tuple[Laplace, ...]
    ZERO = Laplace()
    LIMITS = {"a": 1}
    LIMITS |= {"b": 2}


    def check_type(kind: type[T], value: object) -> T: return value
    def make() -> Gaussian: return Gaussian()
    @contextmanager
    def opened() -> Iterator[Laplace]: yield Laplace()
"""
LAPLACE, GAUSSIAN, WIDER = "kernel.a.Laplace.loss", "kernel.a.Gaussian.loss", "kernel.a.Wider.loss"
BOTH, ALL = {LAPLACE, GAUSSIAN, WIDER}, {LAPLACE, GAUSSIAN, WIDER}


def losses_used(code):
    """Return which methods called `loss` a function uses."""
    text = textwrap.dedent(CLASSES)
    other = "from dataclasses import replace\nfrom typing import Any\nimport math\nimport numpy as np\n"
    other += "from collections.abc import Callable, Mapping\nfrom discreet.kernel.a import *\n"
    names = "Laplace, Gaussian, Noise, Many, Pair, Ledger, ZERO, LIMITS, check_type, make, opened"
    other = other.replace("import *", f"import {names}") + textwrap.dedent(code)
    graph = CodeGraph({"kernel/a": text, "kernel/b": other})
    return {name for name in graph.uses("kernel.b.f") if name.endswith(".loss")}


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("def f(x: Laplace): return x.loss()", {LAPLACE}),
        ("def f(x: 'Laplace | None'): return x.loss()", {LAPLACE}),
        ("def f(x: Noise): return x.loss()", ALL),
        ("def f(x: Gaussian): return x.loss()", {GAUSSIAN, WIDER}),  # and what a subclass makes of it
        ("def f(x): return x.loss()", ALL),
        ("def f(x: Any): return x.loss()", ALL),
        ("def f(x: object): return x.loss()", ALL),
        ("def f(x: str): return x.loss()", set()),
        ("def f(x: np.ndarray): return x.loss()", set()),
        ("def f(): return math.loss()", set()),
        ("def f(): return 'text'.loss()", set()),
        ("def f(): return ZERO.loss()", {LAPLACE}),
        ("def f(x: Pair): return x.left.loss()", {LAPLACE}),
        ("def f(x: Pair): return x.right.source.loss()", {LAPLACE}),
        ("def f(x: Laplace): return x.inner.loss()", {GAUSSIAN, WIDER}),
        ("def f(x: Laplace): return x.twice().loss()", {LAPLACE}),
        ("def f(): return make().loss()", {GAUSSIAN, WIDER}),
        ("def f(x): return check_type(Laplace, x).loss()", {LAPLACE}),
        ("def f(x: Laplace): return replace(x, scale=1).loss()", {LAPLACE}),
        ("def f(x: Laplace):\n    y = x\n    return y.loss()", {LAPLACE}),
        ("def f(x: Laplace, z):\n    y = x\n    y = z\n    return y.loss()", ALL),
        ("def f(x: Pair):\n    a, b = x.left, x.left\n    return b.loss()", {LAPLACE}),
        ("def f(x: Pair): return [y.loss() for y in x.many]", {LAPLACE}),
        ("def f(x: Pair): return [y.loss() for _, y in x.named]", {LAPLACE}),
        ("def f(x: Many): return x[0].loss()", {LAPLACE}),
        ("def f(x: Mapping[Gaussian, Laplace]): return [v.loss() for k, v in x.items()]", {LAPLACE}),
        ("def f(x: Mapping[Gaussian, Laplace]): return [v.loss() for v in sorted(x.values())]", {LAPLACE}),
        ("def f(x: Mapping[Gaussian, Laplace]): return [k.loss() for k in x]", {GAUSSIAN, WIDER}),
        ("def f(x: Many): return [y.loss() for i, y in enumerate(x)]", {LAPLACE}),
        ("def f(x: Many, y): return [a.loss() for a, b in zip(x, y)]", ALL),
        ("def f(g: Callable[[int], Laplace]): return g(1).loss()", {LAPLACE}),
        ("def f():\n    with opened() as x:\n        return x.loss()", {LAPLACE}),
        ("def f(x):\n    match x:\n        case Pair(left, right):\n            return left.loss()", {LAPLACE}),
        ("def f(x):\n    match x:\n        case y:\n            return y.loss()", ALL),
        ("def f(math): return math.loss()", ALL),  # a local name hides the import
        ("from discreet.kernel import a\ndef f(): return a.loss()", set()),
        ("from discreet.kernel import a\ndef f(a): return a.loss()", ALL),
        ("def f(x): return getattr(x, 'loss')()", ALL),
        ("def f(x: Laplace): return next(iter([x])).loss()", ALL),
    ],
)
def test_attributes_are_looked_up_in_the_classes_that_the_object_may_have(code, used):
    assert losses_used(code) == used


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("def f(x: Ledger): return x.charge()", {"kernel.a.Ledger.charge", "kernel.a.Account.charge"}),
        ("def f(x: Gaussian): return x + x", {"kernel.a.Gaussian.__add__"}),
        ("def f(x: Gaussian): return x.variance", {"kernel.a.Gaussian.__init__"}),
        ("def f(x: Laplace): return x.scale", {"kernel.a.Laplace"}),
        ("def f(): return LIMITS", {"kernel.a.LIMITS"}),
    ],
)
def test_protocols_special_methods_assigned_attributes_and_constants_are_used(code, used):
    text = textwrap.dedent(CLASSES)
    names = "Laplace, Gaussian, Ledger, LIMITS"
    graph = CodeGraph({"kernel/a": text, "kernel/b": f"from .a import {names}\n{code}\n"})
    assert used <= graph.reach(["kernel.b.f"], {})


def test_a_constant_that_is_changed_later_is_one_definition():
    code = {"kernel/a": "LIMITS = {}\nLIMITS |= {'b': 2}\n"}
    before = CodeGraph(code).modules["kernel.a"].hashes["kernel.a.LIMITS"]
    after = CodeGraph({"kernel/a": "LIMITS = {}\nLIMITS |= {'b': 3}\n"}).modules["kernel.a"].hashes["kernel.a.LIMITS"]
    assert before != after


def test_imports_are_followed_through_packages_and_relative_names():
    package = {"kernel/ledger/__init__": "from .chain import add\n", "kernel/ledger/chain": "def add(): return 1\n"}
    uses = {
        "kernel/b": "from discreet.kernel.ledger import add\ndef f(): return add()\n",
        "kernel/c": "from discreet.kernel import ledger\ndef f(): return ledger.add()\n",
        "kernel/ledger/d": "from . import chain as other\ndef f(): return other.add()\n",
        "kernel/e": "def f():\n    from .ledger.chain import add as plus\n    return plus()\n",
    }
    graph = CodeGraph(package | uses)
    for path in uses:
        assert "kernel.ledger.chain.add" in graph.uses(f"{path.replace('/', '.')}.f"), path


def test_a_changed_module_is_read_anew_and_what_others_know_of_it_too():
    texts = {"kernel/a": "class A:\n    def g(self) -> int: return 1\n", "kernel/b": "def f(x): return x.g()\n"}
    graph = CodeGraph(texts)
    assert graph.uses("kernel.b.f") == {"kernel.a.A.g"}
    same = graph.with_text("kernel/a", "class A:\n    def g(self) -> int: return 2\n")
    assert same.modules["kernel.a"].hashes != graph.modules["kernel.a"].hashes
    assert same.uses("kernel.b.f") == {"kernel.a.A.g"}
    texts["kernel/c"] = "from .a import make\ndef f(): return make().g()\n"
    typed = {**texts, "kernel/a": texts["kernel/a"] + "class B:\n    def g(self): return 2\ndef make() -> A: ...\n"}
    graph = CodeGraph(typed)
    assert "kernel.a.B.g" not in graph.uses("kernel.c.f")
    assert "kernel.a.B.g" in graph.with_text("kernel/a", typed["kernel/a"].replace("-> A", "-> B")).uses("kernel.c.f")
    renamed = graph.with_text("kernel/a", "class A:\n    def h(self) -> int: return 1\n")
    assert renamed.uses("kernel.b.f") == set()
    added = graph.with_text("kernel/a", "class A:\n    def g(self) -> int: return 1\nclass B:\n    def g(self): ...\n")
    assert added.uses("kernel.b.f") == {"kernel.a.A.g", "kernel.a.B.g"}
