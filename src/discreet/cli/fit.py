"""discreet fit: fit a private model to the rows of a query."""

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import privacy
from discreet.cli.terminal import (
    PLOT_SUFFIXES,
    By,
    LogOption,
    PolicyFile,
    check_output_path,
    exit_on_error,
    log_for_owner,
    needing_extra,
    parse_assignment,
    usage_error,
)
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.kernel.errors import PolicyError
from discreet.kernel.event import OWNER
from discreet.policy import Policy
from discreet.privacy.conversion import conversion_delta

MODELS = {
    "explainable-boosting-classifier": "ExplainableBoostingClassifier",
    "explainable-boosting-regressor": "ExplainableBoostingRegressor",
    "empirical-covariance": "EmpiricalCovariance",
    "gaussian-mixture": "GaussianMixture",
    "gaussian-nb": "GaussianNB",
    "kmeans": "KMeans",
    "linear-regression": "LinearRegression",
    "logistic-regression": "LogisticRegression",
    "pca": "PCA",
    "standard-scaler": "StandardScaler",
}


def fit(  # noqa: PLR0913, PLR0917 - options of a command
    policy: PolicyFile,
    model: Annotated[
        str,
        typer.Argument(help=f"The model: {', '.join(MODELS)}.", metavar="MODEL", autocompletion=lambda: list(MODELS)),
    ],
    sql: Annotated[str, typer.Argument(help="A SELECT without aggregates; the target is the last column.")],
    epsilon: Annotated[str, typer.Option(help="The privacy cost of the model, such as 0.5.")],
    delta: Annotated[str | None, typer.Option(help="The delta of the model (default: the budget's).")] = None,
    set: Annotated[  # noqa: A002 - the name of the option
        list[str] | None, typer.Option(help="A parameter of the model, such as n_components=5; repeatable.")
    ] = None,
    by: By = OWNER,
    out: Annotated[Path | None, typer.Option(help="The JSON file to save the model to.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="The file for a plot of a two-column model (.svg, .png or .pdf).")
    ] = None,
    log: LogOption = None,
) -> None:
    """Fit a private model to the rows of a query, and print its parameters."""
    settings = dict(parse_assignment(text, "--set") for text in set or [])
    check_output_path(out, "--out")
    check_output_path(plot, "--plot", endings=PLOT_SUFFIXES)
    with (
        exit_on_error(),
        log_for_owner(loaded_policy := Policy.load(policy), log),
        open_curator(loaded_policy) as curator,
    ):
        settings["delta"] = _default_delta(curator) if delta is None else delta
        fitted_model = _fit_model(curator, _create_model(model, {"epsilon": epsilon, **settings}), sql, by)
    description = _describe_model(fitted_model)
    typer.echo(json.dumps(description, indent=2))
    if out is not None:
        out.write_text(json.dumps(description))
    if plot is not None:
        _draw_model(fitted_model, plot)


def _fit_model(curator: Curator, model: Any, sql: str, by: str) -> Any:
    try:
        return curator.fit(model, sql, by=by)
    except PolicyError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:  # an invalid setting, or noise too large to continue
        usage_error(f"{error}.")


def _create_model(name: str, settings: dict[str, Any]) -> Any:
    if name not in MODELS:
        usage_error(f"model {name!r} does not exist. Use one of {', '.join(MODELS)}.")
    try:
        with needing_extra("models", "learn"):
            return getattr(import_module("discreet.learn"), MODELS[name])(**settings)
    except TypeError as error:
        usage_error(f"--set: {str(error).partition('() ')[2]}.")


def _default_delta(curator: Curator) -> Any:
    return conversion_delta(curator.policy.budget) if curator.policy.budget.delta else 0


def _describe_model(model: Any) -> dict[str, Any]:
    loss = model.loss_
    spent = {"epsilon": str(loss.epsilon)}
    if loss.epsilon is None:
        spent = {
            "epsilon": f"{float(privacy.to_epsilon(loss, loss.at_delta)):.6g}",
            "delta": f"{float(loss.at_delta):g}",
        }
    spent["rho"] = str(loss.rho)
    parameters = import_module("discreet.learn.fit_session").fitted_attributes(model)
    del parameters["loss_"]
    return {
        "model": type(model).__name__,
        "protects": f"{loss.neighbours} of one {loss.unit}",
        "loss": spent,
        **{name.rstrip("_"): parameters[name] for name in sorted(parameters)},
    }


def _draw_model(model: Any, path: Path) -> None:
    try:
        import_module("discreet.learn").draw(model, path)
    except (ImportError, OSError, TypeError, ValueError) as error:
        usage_error(f"--plot: {error}.")
