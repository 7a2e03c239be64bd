"""The terms of a ledger and those of a policy: what differs, and how the owner's changes are recorded.

A ledger of one data set follows its policy. The terms of a population are in its ledger; a policy of one of its data
sets must agree with them, and `discreet ledger set-budget` changes them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.terms import DatasetTerms, Terms
from discreet.kernel.loss import Budget
from discreet.policy import Policy, check_same_population, check_same_unit
from discreet.policy.validators import format_number


def policy_terms(policy: Policy) -> dict[str, Any]:
    """Return the terms of a new ledger with this policy's data set."""
    terms = {"name": policy.account, "budget": policy.budget, "analysts": policy.analyst_budgets()}
    if not policy.dataset:
        return {**terms, "unit_declaration": policy.unit_fingerprint()}
    members = {"datasets": {policy.dataset: _member(policy)}, "dataset": policy.dataset}
    return {**terms, **members, "unit_declaration": policy.population_declaration()}


def check_and_record_terms(ledger: Ledger, policy: Policy) -> None:
    """Record what the owner changed in the policy of a data set, or check that it agrees with its population."""
    terms = ledger.terms
    if (terms.datasets is None) == bool(policy.dataset):
        hint = f"set population = {terms.name!r}" if terms.datasets else "remove population, or use another ledger"
        whose = "a population" if terms.datasets else "one data set"
        raise PolicyError(f"[data]: the ledger belongs to {whose}, {terms.name!r}. In the policy, {hint}.")
    if terms.datasets is None:
        if terms.unit_declaration:
            check_same_unit(terms.unit_declaration, policy)
        if [*_differences(terms, policy)] or terms.unit_declaration != policy.unit_fingerprint(terms.unit_declaration):
            _set_budget(ledger, policy, terms)
        return
    check_same_population(terms.unit_declaration, policy)
    member = terms.datasets.get(policy.dataset)
    if member and member.unit_declaration:
        check_same_unit(member.unit_declaration, policy)
    if differences := [*_differences(terms, policy)]:
        hint = "run: discreet ledger set-budget POLICY" if member else "change them from the policy of a member first"
        raise PolicyError(
            f"[budget]: the terms of the population {terms.name!r} differ: {'; '.join(differences)}. Correct the "
            f"policy, or, to make these the terms of the population, {hint}."
        )
    if member is None:
        _join(ledger, policy)
    elif member.unit_declaration != policy.unit_fingerprint(member.unit_declaration):
        _set_budget(ledger, policy, terms)


def differences_from_terms(terms: Terms, policy: Policy) -> list[str]:
    """Return what differs between a policy and the recorded terms; PolicyError if the privacy unit does."""
    if (terms.datasets is None) == bool(policy.dataset):
        raise PolicyError(f"[data]: population: the ledger of {terms.name!r} does not fit this policy. Correct one.")
    if terms.datasets is not None:
        check_same_population(terms.unit_declaration, policy)
    member = (terms.datasets or {}).get(policy.dataset)
    declaration = terms.unit_declaration if terms.datasets is None else member and member.unit_declaration
    if declaration:
        check_same_unit(declaration, policy)
    return [*_differences(terms, policy)]


def set_budget_of_policy(ledger: Ledger, policy: Policy) -> list[str]:
    """Make a policy's [budget] the terms of its ledger, and return what changed."""
    terms = ledger.terms
    if terms.datasets is None:
        changes = [*_differences(terms, policy)]
        check_and_record_terms(ledger, policy)
        return changes
    check_same_population(terms.unit_declaration, policy)
    if policy.dataset not in terms.datasets:
        raise PolicyError(
            f"[data]: {policy.data.name!r} is not a data set of {terms.name!r} yet. Open it once with the terms of the "
            "population (discreet budget POLICY), then change them."
        )
    check_same_unit(terms.datasets[policy.dataset].unit_declaration, policy)
    changes = [*_differences(terms, policy)]
    if changes:
        _set_budget(ledger, policy, terms)
    return changes


def _set_budget(ledger: Ledger, policy: Policy, terms: Terms) -> None:
    """Record the policy's terms, unless others than those that it was compared with were recorded since."""
    member = (terms.datasets or {}).get(policy.dataset)
    declared = policy.unit_fingerprint(member.unit_declaration if member else terms.unit_declaration)
    own: dict[str, Any] = (
        {"member": DatasetTerms(policy.dataset_limit, declared)} if policy.dataset else {"unit_declaration": declared}
    )
    ledger.set_budget(policy.budget, analysts=policy.analyst_budgets(), replaces=terms, **own)


def _join(ledger: Ledger, policy: Policy) -> None:
    try:
        ledger.join(_member(policy))
    except PolicyError:
        if policy.dataset not in (ledger.terms.datasets or {}):
            raise
        check_and_record_terms(ledger, policy)  # another process joined it at the same moment


def _member(policy: Policy) -> DatasetTerms:
    return DatasetTerms(policy.dataset_limit, policy.unit_fingerprint())


def _differences(terms: Terms, policy: Policy) -> Iterator[str]:
    """Yield each limit that differs, as it is in the ledger and in the policy."""
    recorded, declared = _limits(terms.budget, terms.analysts or {}), _limits(policy.budget, policy.analyst_budgets())
    if terms.datasets and policy.dataset in terms.datasets:
        recorded["this data set"] = terms.datasets[policy.dataset].limit
        declared["this data set"] = policy.dataset_limit
    for name in dict.fromkeys([*recorded, *declared]):
        limits = recorded.get(name), declared.get(name)
        if len({each and (each.epsilon, each.delta, each.discover) for each in limits}) > 1:
            old, new = map(_budget_text, limits)
            if old == new:  # to six digits
                old, new = map(repr, limits)
            yield f"{name}: {old} in the ledger, {new} in the policy"


def _limits(budget: Budget, analysts: Mapping[str, Budget]) -> dict[str, Budget | None]:
    return {"total": budget, **{f"analyst {who}": limit for who, limit in analysts.items()}}


def _budget_text(budget: Budget | None) -> str:
    if budget is None:
        return "no limit"
    delta = f", delta {format_number(budget.delta)}, discover {format_number(budget.discover)}" if budget.delta else ""
    return f"epsilon {format_number(budget.epsilon)}{delta}"
