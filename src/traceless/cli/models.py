"""From the options of ``traceless new`` to an estimator that has learned nothing yet."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any


def _parameters(text: str) -> dict[str, str]:
    """Option -> parameter, of a list in which those of one name are named once."""
    pairs = (word.partition("=") for word in text.split())
    return {option: parameter or option for option, _, parameter in pairs}


_LAYER = "components=n_units activation spread=scale seed=random_state"
_WEIGHTS = "class_weight weighting solver"
MAPS = {
    "linear": ("Linear", _parameters("")),
    "polynomial": ("Polynomial", _parameters("degree gamma coef0")),
    "fourier": (
        "RandomFourier",
        _parameters("components=n_components gamma seed=random_state input_resolution"),
    ),
    "layer": ("RandomLayer", _parameters(f"{_LAYER} input_resolution")),
    "landmarks": (
        "Landmarks",
        _parameters("components=points gamma seed=random_state input_resolution"),
    ),
}
MODELS = {
    "lssvc": ("LSSVC", _parameters(f"rho {_WEIGHTS}")),
    "lssvr": ("LSSVR", _parameters("rho target_resolution solver")),
    "pathsvc": ("PathSVC", _parameters("c=C kernel gamma degree coef0 class_weight strategy")),
    "lpsvm": ("LPSVM", _parameters(f"c=C {_WEIGHTS}")),
    "esvm": ("ESVM", _parameters(f"c=C {_LAYER} {_WEIGHTS}")),
    "wesvm": ("wESVM", _parameters(f"c=C {_LAYER} {_WEIGHTS}")),
}
MAPPED = ("lssvc", "lssvr")  # those for which a feature map is chosen


def built(model: str, map_: str | None, options: Mapping[str, Any]) -> Any:
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

    given = {name: value for name, value in options.items() if value is not None}
    name, parameters = MODELS[model]
    if model in MAPPED:
        feature_map, rest = _map(map_ or "linear", given, parameters)
        return getattr(traceless, name)(
            feature_map, **_chosen(rest, parameters, f"--model {model}")
        )
    if map_ is not None:
        raise ValueError(f"--model {model} has its own features: leave out --map {map_}.")
    if model == "pathsvc" and importlib.util.find_spec("numba") is None:
        raise ImportError("PathSVC needs numba: pip install 'traceless[path]'")
    return getattr(traceless, name)(**_chosen(given, parameters, f"--model {model}"))


def _map(
    map_: str, given: Mapping[str, Any], parameters: Mapping[str, str]
) -> tuple[Any, dict[str, Any]]:
    """The feature map, and the options that are left for the model."""
    from traceless import features

    name, own = MAPS[map_]
    own = {**own, "resolution": "resolution", "bias": "bias"}
    mine = {option: value for option, value in given.items() if option not in parameters}
    chosen = _chosen(mine, own, f"--map {map_}")
    return getattr(features, name)(**chosen), {o: v for o, v in given.items() if o in parameters}


def _chosen(given: Mapping[str, Any], known: Mapping[str, str], whose: str) -> dict[str, Any]:
    for option in given:
        if option not in known:
            listed = ", ".join(map(_flag, known))
            raise ValueError(f"{_flag(option)} does nothing with {whose}, which takes {listed}.")
    return {known[option]: value for option, value in given.items()}


def _flag(option: str) -> str:
    special = {"c": "--C", "bias": "--no-bias"}
    return special.get(option, f"--{option.replace('_', '-')}")
