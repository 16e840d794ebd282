"""The options of ``traceless new`` that choose a model, and the estimator that they give.

`MODELS` and `MAPS` say which options each class takes, and how its parameters are called.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceless.cli.inputs import Function


def _parameters(text: str) -> dict[str, str]:
    """Option -> parameter, from words ``option=parameter``, or one word if both are the same."""
    pairs = (word.partition("=") for word in text.split())
    return {option: parameter or option for option, _, parameter in pairs}


_LAYER = "components=n_units activation spread=scale seed=random_state"
_WEIGHTS = "class_weight weighting solver"
_RANDOM = "seed=random_state input_resolution"
_EVERY_MAP = "resolution bias"
MAPS = {
    "linear": ("Linear", _parameters(_EVERY_MAP)),
    "polynomial": ("Polynomial", _parameters(f"degree gamma coef0 {_EVERY_MAP}")),
    "fourier": (
        "RandomFourier",
        _parameters(f"components=n_components gamma {_RANDOM} {_EVERY_MAP}"),
    ),
    "layer": ("RandomLayer", _parameters(f"{_LAYER} input_resolution {_EVERY_MAP}")),
    "landmarks": ("Landmarks", _parameters(f"components=points gamma {_RANDOM} {_EVERY_MAP}")),
}
MODELS = {
    "lssvc": ("LSSVC", _parameters(f"rho {_WEIGHTS}")),
    "lssvr": ("LSSVR", _parameters("rho target_resolution solver")),
    "pathsvc": ("PathSVC", _parameters("c=C kernel gamma degree coef0 class_weight strategy")),
    "lpsvm": ("LPSVM", _parameters(f"c=C {_WEIGHTS}")),
    "esvm": ("ESVM", _parameters(f"c=C {_LAYER} {_WEIGHTS}")),
    "wesvm": ("wESVM", _parameters(f"c=C {_LAYER} {_WEIGHTS}")),
}
_MAPPED = ("lssvc", "lssvr")  # models for which a feature map is chosen


_OPTIONS: dict[tuple[str, ...], tuple[Any, str]] = {  # flag: type or choices, help
    ("--model",): (list(MODELS), "The estimator [lssvc]."),
    ("--map", "map_"): (list(MAPS), "The feature map [linear]."),
    ("--rho",): (float, "Regularisation of lssvc and lssvr [1]."),
    ("--C", "c"): (float, "The same for the other models, 1/rho [1]."),
    ("--class-weight",): (str, "balanced, inverse, golden, or a=2,b=1."),
    ("--weighting",): (
        ["shared", "one_vs_rest"],
        "Whether all problems share class weights [shared].",
    ),
    ("--solver",): (["cholesky", "woodbury"], "Solve when asked, or after each change [cholesky]."),
    ("--components",): (click.IntRange(min=1), "Features of a map [100]."),
    ("--gamma",): (float, "Of fourier, landmarks, polynomial, pathsvc."),
    ("--degree",): (click.IntRange(min=1), "Of polynomial, pathsvc."),
    ("--coef0",): (float, "Of polynomial, pathsvc."),
    ("--activation",): (["sigmoid", "tanh", "relu", "sine"], "Of a layer [sigmoid]."),
    ("--spread",): (float, "Weights of a layer are uniform in ±SPREAD."),
    ("--seed",): (int, "Of random maps [0]."),
    ("--kernel",): (["rbf", "linear", "poly"], "Of pathsvc."),
    ("--strategy",): (["ovo", "ovr"], "Of pathsvc."),
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
    """The estimator; an option that does nothing for it is refused.

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
    name, parameters = MODELS[model]
    if model in _MAPPED:
        map_ = map_ or "linear"
        of_map = {option: given.pop(option) for option in list(given) if option not in parameters}
        map_name, map_parameters = MAPS[map_]
        chosen = getattr(features, map_name)(**_named(of_map, map_parameters, f"--map {map_}"))
        return getattr(traceless, name)(chosen, **_named(given, parameters, f"--model {model}"))
    if map_ is not None:
        raise ValueError(f"--model {model} has its own features: leave out --map {map_}.")
    if model == "pathsvc" and importlib.util.find_spec("numba") is None:
        raise ImportError("PathSVC needs numba: pip install 'traceless[path]'")
    return getattr(traceless, name)(**_named(given, parameters, f"--model {model}"))


def _named(given: Mapping[str, Any], known: Mapping[str, str], whose: str) -> dict[str, Any]:
    """Options under the names of parameters; one that is not known is refused."""
    for option in given:
        if option not in known:
            flags = ", ".join(map(_flag, known))
            raise ValueError(f"{_flag(option)} does nothing with {whose}, which takes {flags}.")
    return {known[option]: value for option, value in given.items()}


def _flag(option: str) -> str:
    special = {"c": "--C", "bias": "--no-bias"}
    return special.get(option, f"--{option.replace('_', '-')}")
