"""The options of ``traceless new`` that choose a model, and the estimator that they give.

An option goes to the parameter of its name. A class that has no such parameter refuses it.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceless.cli.inputs import Function

_MAPS = ("Linear", "Polynomial", "RandomFourier", "RandomLayer")
_MODELS = ("LSSVC", "LSSVR", "PathSVC", "PathSVR", "PathOneClass", "LPSVM", "ESVM", "wESVM")
MAPS = {name.removeprefix("Random").lower(): name for name in _MAPS}
MODELS = {name.lower(): name for name in _MODELS}
REGRESSORS, UNLABELLED = ("lssvr", "pathsvr"), ("pathoneclass",)
_MAPPED = ("lssvc", "lssvr")  # models for which a feature map is chosen
_PARAMETERS = {  # of the options whose names differ from the names of their parameters
    "components": ("n_components", "n_units"),
    "spread": ("scale",),
    "seed": ("random_state",),
    "c": ("C",),
}
_PASSED_ON = {"free_intercept", "standardize", "class_weight", "weighting", "solver", "decision"}


class Rho(click.ParamType[Any]):
    """A number, or "evidence": chosen from the sums at each solve."""

    name = "rho"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: D102
        return value if value == "evidence" else click.FLOAT.convert(value, param, ctx)


_OPTIONS: dict[tuple[str, ...], tuple[Any, str]] = {  # flag: type or choices, help
    ("--model",): (list(MODELS), "The model [lssvc]."),
    ("--map", "map_"): (list(MAPS), "The feature map [linear]."),
    ("--rho",): (Rho(), "Regularisation of lssvc and lssvr, or evidence [1]."),
    ("--C", "c"): (float, "The same for the other models, 1/rho [1]."),
    ("--free-intercept/--no-free-intercept",): (bool, "Intercept outside the penalty [yes]."),
    ("--standardize/--no-standardize",): (bool, "Penalise in units of deviations [yes]."),
    ("--class-weight",): (str, "balanced, inverse, golden, or a=2,b=1."),
    ("--weighting",): (
        ["shared", "one_vs_rest"],
        "Whether all problems share class weights [shared].",
    ),
    ("--decision",): (
        ["scores", "posterior"],
        "Predict the class of the highest score, or of the highest probability [scores].",
    ),
    ("--solver",): (["cholesky", "woodbury"], "Solve when asked, or after each change [cholesky]."),
    ("--components",): (click.IntRange(min=1), "Features of a map [100]."),
    ("--gamma",): (float, "Of fourier, polynomial, path models."),
    ("--degree",): (click.IntRange(min=1), "Of polynomial, path models."),
    ("--coef0",): (float, "Of polynomial, path models."),
    ("--activation",): (["sigmoid", "tanh", "relu", "sine"], "Of a layer [sigmoid]."),
    ("--spread",): (float, "Weights of a layer are uniform in ±SPREAD."),
    ("--seed",): (int, "Of random maps [0]."),
    ("--kernel",): (["rbf", "linear", "poly", "sigmoid"], "Of path models."),
    ("--strategy",): (["ovo", "ovr"], "Of pathsvc."),
    ("--epsilon",): (float, "Half the width of the tube of pathsvr [0.1]."),
    ("--nu",): (float, "Largest part of rows outside, of pathoneclass [0.5]."),
    ("--bias/--no-bias",): (bool, "With a constant feature [yes]."),
    ("--resolution",): (float, "Grid of the features, a power of two."),
    ("--input-resolution",): (float, "Grid of the rows, for random maps."),
    ("--target-resolution",): (float, "Grid of the targets of lssvr."),
}


def model_options(function: Function) -> Function:
    """Add the options that choose a model."""
    for names, (kind, help_) in reversed(_OPTIONS.items()):
        type_ = click.Choice(kind) if isinstance(kind, list) else kind
        function = click.option(*names, type=type_, default=None, help=help_)(function)
    return function


def build(model: str, map_: str | None, options: Mapping[str, Any]) -> Any:
    """The estimator; an option without effect is refused.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    map_ : str or None
        One of `MAPS`, where the model takes one.
    options : dict
        By the names of the command's options; None is an option not given.
    """
    import traceless
    from traceless import features

    given = {name: value for name, value in options.items() if value is not None}
    make = getattr(traceless, MODELS[model])
    if model in _MAPPED:
        map_ = map_ or "linear"
        make_map, known = getattr(features, MAPS[map_]), _parameters(make)
        of_map = {option: given.pop(option) for option in list(given) if option not in known}
        chosen = make_map(**_named(of_map, make_map, f"--map {map_}"))
        return make(chosen, **_named(given, make, f"--model {model}"))
    if map_ is not None:
        raise ValueError(f"--model {model} has its own features: leave out --map {map_}.")
    if model.startswith("path") and importlib.util.find_spec("numba") is None:
        raise ImportError(f"{MODELS[model]} needs numba: pip install 'traceless[path]'")
    return make(**_named(given, make, f"--model {model}"))


def as_options(model: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `traceless new` that give a model with these facts, by their names.

    Parameters
    ----------
    model : dict
        ``kind`` and ``parameters``, as the description of a store has them.
    """
    parameters = dict(model["parameters"])
    said = {"model": model["kind"].lower()}
    map_ = parameters.pop("feature_map", None)
    if map_ is not None:
        said["map"] = map_["kind"].removeprefix("Random").lower()
        parameters |= map_["parameters"]
    for option in _option_names():
        for name in _PARAMETERS.get(option, (option,)):
            if parameters.get(name) is not None:
                said[_flag(option).lstrip("-").removeprefix("no-")] = _word(parameters[name])
    return said


def _word(value: Any) -> Any:
    """The value of a parameter as an option takes it."""
    if isinstance(value, Mapping) and "pairs" in value:
        return ",".join(f"{label}={weight:g}" for label, weight in value["pairs"])
    if isinstance(value, Mapping):
        return " x ".join(map(str, value.get("shape", ["?"])))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _option_names() -> list[str]:
    return [flags[-1].split("/")[0].lstrip("-").replace("-", "_") for flags in _OPTIONS]


def _parameters(make: Callable[..., Any]) -> dict[str, str]:
    """Options and the parameters that they set; `LPSVM` and its like pass some on to `LSSVC`."""
    names = {*inspect.signature(make).parameters}
    names |= _PASSED_ON if "parameters" in names else set()
    names -= {"random_state"} if "kernel" in names else set()  # without effect there
    several = (
        (option, name) for option in _option_names() for name in _PARAMETERS.get(option, (option,))
    )
    return {option: name for option, name in several if name in names}


def _named(given: Mapping[str, Any], make: Callable[..., Any], whose: str) -> dict[str, Any]:
    """Options under the names of parameters; one that is not known is refused."""
    known = _parameters(make)
    for option in given:
        if option not in known:
            flags = ", ".join(map(_flag, known))
            raise ValueError(f"{_flag(option)} does nothing with {whose}, which takes {flags}.")
    return {known[option]: value for option, value in given.items()}


def _flag(option: str) -> str:
    special = {"c": "--C", "bias": "--no-bias"}
    return special.get(option, f"--{option.replace('_', '-')}")
