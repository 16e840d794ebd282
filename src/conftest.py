"""Modules that need torch are collected for their examples where it is installed."""

from importlib.util import find_spec

_NEED_TORCH = ["cutting", "encoders", "gram", "products", "solve"]
collect_ignore = (
    []
    if find_spec("torch")
    else [
        *(f"traceless/device/{name}.py" for name in _NEED_TORCH),
        "traceless/knowledge/tensor_gathering.py",
    ]
)
