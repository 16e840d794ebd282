"""The (w, C) state of Lee et al. 2019: what an end user needs to update a model.

Estimators with ``solver="woodbury"`` keep P = (ρI + S)⁻¹, from which the paper's auxiliary
matrix is C = I - ρP. It can be handed out without the knowledge of the rows, for the papers'
penalty: ``free_intercept=False``, ``standardize=False``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from traceless.estimators.least_squares import LeastSquares
from traceless.exceptions import MismatchError
from traceless.parameters import positive
from traceless.solvers.woodbury import STATE_FORMAT, Woodbury
from traceless.transaction import changing


class ExportedState(LeastSquares):
    """Estimators whose state can be handed out as (w, C)."""

    def export_state(self) -> dict[str, Any]:
        """The paper's state: what an end user needs to update the model, and no more.

        Returns
        -------
        dict
            Arrays and strings, ready for ``numpy.savez(path, **state)``: the upper triangle
            of P, the coefficients per response, labels, counts, rho and the feature map's
            specification. Needs ``solver="woodbury"``.
        """
        live = self._held()
        if not isinstance(live, Woodbury):
            raise AttributeError("export_state needs solver='woodbury', which keeps P.")
        self._check_penalty("export_state", AttributeError)
        self._weights()
        return live.export(positive("rho", self.rho))

    def import_state(self, state: Mapping[str, Any]) -> Self:
        """Take over a state made by `export_state`, without the knowledge of its rows.

        The feature map and rho must be those of the state. The model then learns, forgets
        and predicts; it cannot be sealed, merged or given a digest.

        Parameters
        ----------
        state : mapping
            What `export_state` returned, or ``numpy.load`` of the file it was saved to.

        Returns
        -------
        self
        """
        with changing(self) as draft:
            draft._import(state)
        return self

    def _check_penalty(self, what: str, error: type[Exception]) -> None:
        if self.free_intercept or self.standardize is not False:
            raise error(
                f"{what} belongs to the papers' penalty ρ‖w‖², of all coefficients alike. Set "
                "free_intercept=False and standardize=False."
            )

    def _import(self, state: Mapping[str, Any]) -> None:
        self._start_anew()
        if str(state.get("format")) != STATE_FORMAT or self.solver != "woodbury":
            raise ValueError(
                "import_state needs solver='woodbury' and what export_state returned, got "
                f"solver={self.solver!r} and format {str(state.get('format'))!r}."
            )
        self._check_penalty("A state made by export_state", ValueError)
        if self.guard:
            raise ValueError(
                "A state made by export_state has no digests of its rows, which guard=True needs: "
                "set guard=False."
            )
        specification = json.loads(str(state["specification"]))
        self.n_features_in_ = int(specification["n_features"])
        task: Any = str(state["task"])
        self._begin(task)
        self._check_ours(specification, task)
        if float(state["rho"]) != self.rho:
            raise MismatchError(f"rho is {self.rho} here and {float(state['rho'])} in the state.")
        self._state = Woodbury.imported(self._recipe(), state)
