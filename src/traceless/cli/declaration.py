"""The file that declares a store: its sections, and the estimator that they give.

[table] [target] [id] [read]   what columns mean and how files are written (`sources.schema`)
[model]                        the model, its feature map, and parameters of either by name
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceless.sources import Schema

_MAPS = ("Polynomial", "RandomFourier", "RandomLayer")
_MODELS = ("LSSVC", "LSSVR", "PathSVC", "PathSVR", "PathOneClass", "LPSVM", "ESVM", "wESVM")
MAPS = {"linear": "Table"} | {name.removeprefix("Random").lower(): name for name in _MAPS}
MODELS = {name.lower(): name for name in _MODELS}
REGRESSORS, UNLABELLED = ("lssvr", "pathsvr"), ("pathoneclass",)
_MAPPED = ("lssvc", "lssvr")  # models for which a feature map is chosen
_LONGEST = 2**24  # bytes of a file
_SECTIONS = ("table", "target", "id", "read", "model")


def declared(path: str) -> tuple[Schema, Any]:
    """The schema and the estimator that a file declares."""
    from traceless.exceptions import TableError
    from traceless.store.regular import read_outside

    try:
        said = tomllib.loads(read_outside(path, _LONGEST).decode("utf-8-sig"))
        if other := sorted({*said} - {*_SECTIONS}):
            raise ValueError(f"there is no section [{other[0]}]; there are {', '.join(_SECTIONS)}")
        from traceless.sources import Schema

        schema = Schema.from_facts({k: v for k, v in said.items() if k != "model"})
        return schema, build(said.get("model", {}), schema)
    except (TypeError, ValueError) as error:  # TOML's errors are of these too
        raise TableError(f"{path}: {str(error).rstrip('.')}.") from error


def build(said: Any, schema: Schema) -> Any:
    """The estimator of a section [model]; a parameter without effect is refused.

    Parameters
    ----------
    said : dict
        ``kind`` and ``map``, and parameters of the model or its map by their names in Python.
    schema : Schema
    """
    import traceless
    from traceless import features

    if not isinstance(said, Mapping):
        raise ValueError("[model] must be a section")
    given, is_regression = dict(said), schema.labels == "number"
    model = given.pop("kind", "lssvr" if is_regression else "lssvc")
    map_ = given.pop("map", None)
    _check_kinds(model, map_, schema)
    make, phi = getattr(traceless, MODELS[model]), None
    if model in _MAPPED:
        phi = getattr(features, MAPS[map_ or "linear"])()
        made = make(phi)
    else:
        made = make(C=given.pop("C")) if "C" in given else make()
        phi = getattr(made, "feature_map", None)
    if isinstance(phi, features.Table | features.Linear):
        phi = schema.table
        made.set_params(feature_map=phi)
    else:
        (made if phi is None else phi).set_params(table=schema.table)
    parts = [made, *([] if phi is None else [phi])]
    hidden = {"table", "columns", "feature_map"}
    known = {n: part for part in reversed(parts) for n in part.get_params(deep=False)}
    for name, value in given.items():
        if name not in known or name in hidden:
            whose = " and ".join([type(part).__name__ for part in parts])
            names = ", ".join(sorted({*known} - hidden))
            raise ValueError(f"[model] {name} does nothing with {whose}, which take {names}")
        known[name].set_params(**{name: _by_label(value, schema)})
    return made


def described(model: Mapping[str, Any]) -> dict[str, Any]:
    """Kind, map and parameters, by their names in Python, as the section [model] takes them.

    Parameters
    ----------
    model : dict
        ``kind`` and ``parameters``, as the description of a store has them.
    """
    parameters = dict(model["parameters"])
    said = {"kind": model["kind"].lower()}
    map_ = parameters.pop("feature_map", None)
    if map_ is not None:
        names = {name: short for short, name in MAPS.items()} | {"Linear": "linear"}
        said["map"] = names[map_["kind"]]
        parameters |= map_["parameters"]
    hidden = ("table", "columns")
    kept = {k: v for k, v in parameters.items() if v is not None and k not in hidden}
    return said | {name: _word(value) for name, value in kept.items()}


def _check_kinds(model: Any, map_: Any, schema: Schema) -> None:
    """Raise unless there are such a model and such a map, and they suit the target."""
    if model not in MODELS:
        raise ValueError(f"[model] kind must be one of {', '.join(MODELS)}, got {model!r}")
    if map_ is not None and model not in _MAPPED:
        raise ValueError(f"[model] kind {model} has its own features: leave out map")
    if map_ not in (None, *MAPS):
        raise ValueError(f"[model] map must be one of {', '.join(MAPS)}, got {map_!r}")
    if (schema.labels == "number") != (model in REGRESSORS):
        wanted = "kind = 'number' in [target]" if model in REGRESSORS else "lssvr or pathsvr"
        raise ValueError(f"[model] kind {model} does not suit the target: declare {wanted}")
    if not schema.target and model not in UNLABELLED:
        raise ValueError("a section [target] must say which column to predict, column = NAME")


def _by_label(value: Any, schema: Schema) -> Any:
    """Class weights by the labels of the target."""
    if not isinstance(value, Mapping):
        return value
    return {int(k) if schema.labels == "int" else k: v for k, v in value.items()}


def _word(value: Any) -> Any:
    """The value of a parameter as the section takes it; of an array only its shape."""
    if isinstance(value, Mapping) and "pairs" in value:
        return {str(label): weight for label, weight in value["pairs"]}
    if isinstance(value, Mapping):
        return " x ".join(map(str, value.get("shape", ["?"])))
    return value
