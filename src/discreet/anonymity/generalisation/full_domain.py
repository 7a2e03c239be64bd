"""Full-domain generalisation: the best hierarchy level for each column in their lattice; rows may be suppressed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, group_equal_rows
from discreet.anonymity.generalisation.privacy_criteria import PrivacyCriteria, satisfies_criteria
from discreet.anonymity.hierarchies.taxonomy_tree import TaxonomyTree

MAX_NODES = 20_000
_TOLERANCE = 1e-12  # losses are sums of floats in different orders


@dataclass(frozen=True)
class NodeEvaluation:
    """The feasibility and loss of a node.

    `added_loss_below` is a lower bound on the loss from suppressed rows at this node and all nodes below it, on top of
    the loss of their levels; infinite if none of them can be feasible.
    """

    levels: tuple[int, ...]
    is_feasible: bool
    loss: float
    discernibility: int
    added_loss_below: float

    def is_better_than(self, other: "NodeEvaluation | None") -> bool:
        """Return whether this node has the smaller loss; ties are broken by discernibility, then by levels."""
        if other is None or self.loss < other.loss - _TOLERANCE:
            return True
        if self.loss > other.loss + _TOLERANCE:
            return False
        return (self.discernibility, self.levels) < (other.discernibility, other.levels)


NodeEvaluator = Callable[[tuple[int, ...]], NodeEvaluation]


def count_nodes(losses: Sequence[np.ndarray]) -> int:
    """Return the number of nodes."""
    return math.prod(len(level_losses) for level_losses in losses)


def find_optimal_node(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Return the best feasible node, given the loss of each level of each column without suppression.

    Branch and bound: the loss without suppression is a lower bound on the loss of a node, and each evaluation raises
    the bounds of all nodes below it. Nodes whose bound exceeds the best loss are not evaluated.

    >>> def evaluate(levels):
    ...     is_feasible, loss = sum(levels) >= 2, (levels[0] + 2 * levels[1]) / 6
    ...     return NodeEvaluation(levels, is_feasible, loss, 0, 0 if is_feasible else math.inf)
    >>> find_optimal_node([np.array([0, 1, 2]) / 3, np.array([0, 1, 2]) * 2 / 3], evaluate).levels
    (2, 0)
    """
    nodes = np.stack(np.meshgrid(*(np.arange(len(level_losses)) for level_losses in losses), indexing="ij"), axis=-1)
    nodes = nodes.reshape(-1, len(losses))
    min_loss = np.mean([level_losses[nodes[:, column]] for column, level_losses in enumerate(losses)], axis=0)
    order = np.argsort(min_loss, kind="stable")
    nodes, min_loss = nodes[order], min_loss[order]
    added_loss = np.zeros(len(nodes))
    is_open = np.ones(len(nodes), bool)
    best: NodeEvaluation | None = None
    while is_open.any():
        open_nodes = np.flatnonzero(is_open)
        # If this node is infeasible, it excludes many nodes below it; if it is feasible, many with a larger loss.
        index = open_nodes[len(open_nodes) * 3 // 4]
        evaluation = evaluate(tuple(nodes[index].tolist()))
        is_open[index] = False
        if evaluation.added_loss_below:
            is_below = (nodes <= nodes[index]).all(axis=1)
            added_loss[is_below] = np.maximum(added_loss[is_below], evaluation.added_loss_below)
        if evaluation.is_feasible and evaluation.is_better_than(best):
            best = evaluation
        is_open &= (added_loss < math.inf) & (
            min_loss + added_loss <= (math.inf if best is None else best.loss) + _TOLERANCE
        )
    return best


def find_node_greedily(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Start at the highest levels, and lower the level with the smallest resulting loss while the node stays feasible.

    >>> def evaluate(levels):
    ...     return NodeEvaluation(levels, sum(levels) >= 2, (levels[0] + 2 * levels[1]) / 6, 0, 0)
    >>> find_node_greedily([np.arange(3), np.arange(3)], evaluate).levels
    (2, 0)
    """
    best = evaluate(tuple(len(level_losses) - 1 for level_losses in losses))
    if not best.is_feasible:
        return None
    while True:
        lower_nodes = [_lower_one_level(best.levels, column) for column, level in enumerate(best.levels) if level]
        best_lower = None
        for evaluation in map(evaluate, lower_nodes):
            if evaluation.is_feasible and evaluation.is_better_than(best_lower):
                best_lower = evaluation
        if best_lower is None or not best_lower.is_better_than(best):
            return best
        best = best_lower


def _lower_one_level(levels: tuple[int, ...], column: int) -> tuple[int, ...]:
    return (*levels[:column], levels[column] - 1, *levels[column + 1 :])


@dataclass(frozen=True, eq=False)
class FullDomainResult:
    """The level of each column, the rows that are kept, and how the levels were found."""

    levels: tuple[int, ...]
    is_kept: np.ndarray
    optimality: str


@dataclass(frozen=True, eq=False)
class _WeightedRows:
    """Distinct rows as codes by column, the trees of the columns, and the number of table rows that each represents."""

    codes: tuple[np.ndarray, ...]
    trees: tuple[TaxonomyTree, ...]
    weights: np.ndarray

    @property
    def count(self) -> int:
        return int(self.weights.sum())

    def row_losses(self, levels: Sequence[int]) -> np.ndarray:
        """Return the loss of each row on these levels."""
        columns = zip(self.trees, levels, self.codes, strict=True)
        return np.asarray(sum(tree.losses[level][codes] for tree, level, codes in columns) / len(levels))


def find_best_levels(
    codes: Sequence[np.ndarray],
    trees: Sequence[TaxonomyTree],
    criteria: PrivacyCriteria,
    weights: np.ndarray,
    max_suppressed: int,
) -> FullDomainResult | None:
    """Return the levels with the smallest loss if classes that violate a criterion are suppressed, or None.

    The loss is the mean over rows and columns of the trees' losses, and 1 for a suppressed row; ties are broken by
    discernibility. Up to 20,000 combinations of levels are searched completely; beyond that, levels are lowered
    greedily from the top. Classes smaller than k are suppressed first, then those that violate l, or t with respect to
    the remaining rows, until none is left. Each row represents `weights` equal rows.

    >>> ages = TaxonomyTree((("28", "31", "37"), ("<30", "30-39"), ("*",)), np.array([[0, 1, 2], [0, 1, 1], [0, 0, 0]]),
    ...     np.array([[0, 0, 0], [0, 2 / 3, 2 / 3], [1, 1, 1]]))
    >>> find_best_levels([np.arange(3)], [ages], PrivacyCriteria(2), np.array([2, 1, 2]), max_suppressed=0).levels
    (1,)
    """
    weighted_rows = _WeightedRows(tuple(codes), tuple(trees), weights)
    losses = [
        tree.losses[:, column_codes] @ weights / weighted_rows.count
        for tree, column_codes in zip(trees, codes, strict=True)
    ]
    count = count_nodes(losses)
    search = find_optimal_node if count <= MAX_NODES else find_node_greedily
    best = search(losses, lambda levels: _evaluate_node(weighted_rows, levels, criteria, max_suppressed))
    if best is None:
        return None
    classes = _classes_at_levels(weighted_rows, best.levels)
    is_kept = _select_classes(classes, criteria, weights, max_suppressed)[classes.ids]
    optimality = "optimal among" if search is find_optimal_node else "greedy search, possibly not optimal among"
    return FullDomainResult(best.levels, is_kept, f"{optimality} {count:,} combinations of levels")


def _classes_at_levels(weighted_rows: _WeightedRows, levels: Sequence[int]) -> EquivalenceClasses:
    """Return the equivalence classes of the rows if each column is generalised to its level."""
    columns = zip(weighted_rows.trees, levels, weighted_rows.codes, strict=True)
    ids = group_equal_rows([tree.codes[level][codes] for tree, level, codes in columns]).ids
    return EquivalenceClasses(ids, np.bincount(ids, weighted_rows.weights).astype(np.int64))


def _evaluate_node(
    weighted_rows: _WeightedRows, levels: tuple[int, ...], criteria: PrivacyCriteria, max_suppressed: int
) -> NodeEvaluation:
    classes = _classes_at_levels(weighted_rows, levels)
    is_kept = _select_classes(classes, criteria, weighted_rows.weights, max_suppressed)
    suppressed = weighted_rows.count - int(classes.sizes[is_kept].sum())
    row_losses = weighted_rows.row_losses(levels)
    # A row in a class smaller than k is in such a class on all lower levels too. It is suppressed there (loss 1), and
    # its loss from the levels alone would be at most the one here.
    is_small = (classes.sizes < criteria.k)[classes.ids]
    added_loss_below = float((is_small * weighted_rows.weights) @ (1 - row_losses)) / weighted_rows.count
    return NodeEvaluation(
        levels,
        is_feasible=suppressed <= max_suppressed,
        loss=(float(row_losses @ (is_kept[classes.ids] * weighted_rows.weights)) + suppressed) / weighted_rows.count,
        discernibility=int((classes.sizes[is_kept] ** 2).sum()) + suppressed * weighted_rows.count,
        added_loss_below=math.inf
        if _rules_out_lower_levels(classes, is_kept, criteria, max_suppressed)
        else added_loss_below,
    )


def _rules_out_lower_levels(
    classes: EquivalenceClasses, is_kept: np.ndarray, criteria: PrivacyCriteria, max_suppressed: int
) -> bool:
    """Return whether no lower levels can be feasible: on lower levels, more rows are in classes smaller than k.

    If no row may be suppressed, violations of monotone criteria remain too: merging classes that satisfy them cannot
    produce one that does not.
    """
    if classes.sizes[classes.sizes < criteria.k].sum() > max_suppressed:
        return True
    return (
        max_suppressed == 0
        and not is_kept.all()
        and all(criterion.is_monotone for criterion in criteria.sensitive_criteria)
    )


def _select_classes(
    classes: EquivalenceClasses, criteria: PrivacyCriteria, weights: np.ndarray, max_suppressed: int
) -> np.ndarray:
    """Return which classes are kept; stop as soon as more than `max_suppressed` rows would be suppressed."""
    is_kept = classes.sizes >= criteria.k
    min_rows = max(int(classes.sizes.sum()) - max_suppressed, 1)
    while criteria.sensitive_criteria and classes.sizes[is_kept].sum() >= min_rows:
        rows = np.flatnonzero(is_kept[classes.ids])
        remaining_classes = EquivalenceClasses((np.cumsum(is_kept) - 1)[classes.ids[rows]], classes.sizes[is_kept])
        is_satisfied = satisfies_criteria(
            _restrict_criteria(criteria, rows, weights[rows]), remaining_classes, rows, weights[rows]
        )
        if is_satisfied.all():
            break
        is_kept[np.flatnonzero(is_kept)[~is_satisfied]] = False
    return is_kept


def _restrict_criteria(criteria: PrivacyCriteria, rows: np.ndarray, weights: np.ndarray) -> PrivacyCriteria:
    """Return the criteria with respect to the remaining rows instead of the whole table."""
    restricted = [
        replace(criterion, totals=np.bincount(criterion.codes[rows], weights, len(criterion.totals)).astype(np.int64))
        for criterion in criteria.sensitive_criteria
    ]
    return replace(criteria, sensitive_criteria=tuple(restricted))
