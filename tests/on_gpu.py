"""The tests of `tests/device` on a CUDA device, without pytest.

    PYTHONPATH=src python tests/on_gpu.py [cuda:0]

Prints a line for each check, and ends with 1 if one failed.
"""

import inspect
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "device"))

import torch

import same_bits
from traceless import LSSVC, LSSVR
from traceless.device import tensors


class Patch:
    """What pytest's monkeypatch does, for one check."""

    def __init__(self):
        self._before = []

    def setattr(self, where, name, value):
        self._before.append((where, name, getattr(where, name)))
        setattr(where, name, value)

    def undo(self):
        for where, name, value in reversed(self._before):
            setattr(where, name, value)


def checks():
    """(name, function, arguments) of every check."""
    for phi in same_bits.MAPS:
        for task in same_bits.TASKS:
            yield f"knowledge {phi} {task}", same_bits.knowledge, (phi, task)
        for kind in (LSSVC, LSSVR):
            for options in ({}, {"solver": "woodbury"}, {"guard": True}, {"fingerprint": True}):
                yield (
                    f"history {kind.__name__} {phi} {options}",
                    same_bits.history,
                    (
                        kind,
                        phi,
                        options,
                    ),
                )
    for kind in same_bits.DTYPES:
        yield f"type {kind}", same_bits.dtypes, (kind,)
    done = {same_bits.knowledge, same_bits.history, same_bits.dtypes}
    for name, check in inspect.getmembers(same_bits, inspect.isfunction):
        own = inspect.signature(check).parameters
        if check not in done and check.__module__ == "same_bits" and {*own} <= {"device", "patch"}:
            yield name, check, ()


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    if device == "cpu":
        tensors.HOST = frozenset()  # to see that this file works where there is no GPU
    elif not torch.cuda.is_available():
        sys.exit("There is no CUDA device here: this is for a machine that has one.")
    else:
        sys.stdout.write(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}\n")
    warnings.simplefilter("ignore")
    failed = count = 0
    for name, check, arguments in checks():
        patch, start = Patch(), time.perf_counter()
        more = {"patch": patch} if "patch" in inspect.signature(check).parameters else {}
        try:
            check(device, *arguments, **more)
        except Exception:
            failed += 1
            sys.stdout.write(f"FAILED {name}\n{traceback.format_exc(limit=-4)}\n")
        finally:
            patch.undo()
        count += 1
        took = time.perf_counter() - start
        if took > 1:
            sys.stdout.write(f"{name}: {took:.1f} s\n")
        sys.stdout.flush()
    sys.stdout.write(f"{count} checks, {failed} failed\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
