"""Estimators whose columns can be forgotten: a withdrawn consent to one attribute, or a leak.

The sums of the features that stay are those of a model that never saw the others
(`traceless.knowledge.columns`), so nothing is learned again.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Self

import numpy as np

from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.columns import column_numbers
from traceless.transaction import changing


class ForgettableColumns(LeastSquares):
    """Estimators that can be made what they were without some columns."""

    def forget_columns(self, columns: Any) -> Self:
        """Unlearn columns: afterwards the model is as if its rows had never had them.

        Parameters
        ----------
        columns : int, str, sequence of either, or boolean mask of shape (n_features,)
            Numbers (negative ones count from the last column), or names as in
            ``feature_names_in_``. At least one column must stay. With a `Table` also one of its
            categories, as in ``"color=red"``, which is unknown and 0 from then on.

        Returns
        -------
        self
            Its digest is that of a fit to the rows without these columns. Rows to be learned,
            forgotten or predicted have the remaining columns from now on. Where the feature map
            has one resolution for each column, ``feature_map`` is a new one with those that stay.

        Raises
        ------
        TypeError
            If the map mixes columns in its features, as `RandomFourier` and `RandomLayer` do.
            The model is unchanged.
        ValueError
            If there are no such columns; or with ``guard=True`` or ``fingerprint=True``, which
            hash whole rows: ``set_params(guard=False, fingerprint=False)`` gives them up. The
            model is unchanged.

        Warns
        -----
        UserWarning
            If slices were merged without a name: they are known by digests that they had with
            these columns, and are not recognised if they are merged again without them.
        """
        with changing(self) as draft:
            draft._forget_columns(columns)
        return self

    def _forget_columns(self, columns: Any) -> None:
        state, n = self._held(), self.n_features_in_
        self._phi(state)  # the map as it is set now is the one that was learned with
        names, feature_map = getattr(self, "feature_names_in_", None), self._map()
        gone = column_numbers(columns, n, names, feature_map.single_features)
        for name in ("guard", "fingerprint"):
            if getattr(self, name):
                raise ValueError(
                    f"{name}=True keeps hashes of whole rows, of which no column can be taken out. "
                    f"Give them up with set_params({name}=False), or fit a new model to rows "
                    "without these columns. Nothing was changed."
                )
        left, _ = feature_map.without_columns(gone, n)
        known = state.knowledge().without_fingerprint().forget_columns(gone, feature_map)
        if left is not feature_map:
            self.feature_map = left
        numbers = [column for column in gone if isinstance(column, int)]
        self.n_features_in_ = n - len(numbers)
        if names is not None:
            self.feature_names_in_ = np.delete(names, numbers)
        self.__dict__.pop("_guard", None)
        self._state = self._new_state(known)
        if any(re.fullmatch("[0-9a-f]{64}", name) for name in self.merged_):
            warnings.warn(
                "Slices that were merged without a name are known by the digest that they had with "
                "these columns: they are not recognised if they are merged again without them. "
                "Name slices, as in merge(other, name=...), to be safe from that.",
                UserWarning,
                stacklevel=3,
            )
