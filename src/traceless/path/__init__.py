"""The hinge SVM that adds and removes many points at once (Karasuyama & Takeuchi 2009)."""

from traceless.path.kernels import Kernel
from traceless.path.problem import HingeProblem

__all__ = ["HingeProblem", "Kernel"]
