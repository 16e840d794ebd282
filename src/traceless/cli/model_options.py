"""The options of ``traceless new`` that choose a model, and the estimator that they give.

What is set is given to the model or its feature map, whichever has a parameter of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
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
_WORDS = {"yes": True, "true": True, "no": False, "false": False}


def value_of(text: str) -> Any:
    """A number, a truth value, or a word such as "evidence"."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text)


_OPTIONS = (
    click.option("--model", type=click.Choice(list(MODELS)), help="The model [lssvc]."),
    click.option("--map", "map_", type=click.Choice(list(MAPS)), help="The feature map [linear]."),
    click.option(
        "--rho",
        type=value_of,
        metavar="NUMBER",
        help="Regularisation of lssvc, lssvr; or evidence.",
    ),
    click.option("--C", "C", type=float, help="The same for the other models, 1/rho [1]."),
    click.option("--class-weight", help="balanced, inverse, golden, or a=2,b=1."),
    click.option("--components", type=click.IntRange(min=1), help="Features of a map [100]."),
    click.option("--gamma", type=float, help="Of fourier, polynomial, path models."),
    click.option(
        *("--set", "set_"),
        multiple=True,
        metavar="NAME=VALUE",
        help="Any other parameter of the model or its map, as solver=woodbury or kernel=linear.",
    ),
)


def model_options(function: Function) -> Function:
    """Add the options that choose a model."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def build(model: str, map_: str | None, parameters: Mapping[str, Any]) -> Any:
    """The estimator; a parameter without effect is refused.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    map_ : str or None
        One of `MAPS`, where the model takes one.
    parameters : dict
        By their names in Python, and ``components``.
    """
    import traceless
    from traceless import features

    make, given = getattr(traceless, MODELS[model]), dict(parameters)
    if map_ is not None and model not in _MAPPED:
        raise ValueError(f"--model {model} has its own features: leave out --map {map_}.")
    if model not in _MAPPED and "rho" in given:
        raise ValueError(f"--rho does nothing with --model {model}, which takes --C.")
    if model in _MAPPED:
        made = make(getattr(features, MAPS[map_ or "linear"])())
    else:
        made = make(C=given.pop("C")) if "C" in given else make()
    parts = [made, *([made.feature_map] if hasattr(made, "feature_map") else [])]
    known = {name: part for part in reversed(parts) for name in part.get_params(deep=False)}
    if "components" in given:
        given["n_units" if "n_units" in known else "n_components"] = given.pop("components")
    for name, value in given.items():
        if name not in known:
            whose = " and ".join([type(part).__name__ for part in parts])
            raise ValueError(f"{name} does nothing with {whose}, which take {', '.join(known)}.")
        known[name].set_params(**{name: value})
    return made


def described(model: Mapping[str, Any]) -> dict[str, Any]:
    """Model, map and parameters, by their names in Python, as ``--set`` takes them.

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
    return said | {name: _word(value) for name, value in parameters.items() if value is not None}


def _word(value: Any) -> Any:
    """The value of a parameter as an option takes it."""
    if isinstance(value, Mapping) and "pairs" in value:
        return ",".join(f"{label}={weight:g}" for label, weight in value["pairs"])
    if isinstance(value, Mapping):
        return " x ".join(map(str, value.get("shape", ["?"])))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
