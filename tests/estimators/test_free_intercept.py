"""What predictions with a free intercept are made of (docs/how-it-works.md)."""

from fractions import Fraction

import numpy as np

from traceless import LSSVR


def test_a_prediction_is_the_value_near_the_mean_and_the_coefficient_times_the_distance(rng):
    step, rho = 2.0**-14, 0.75
    X, t = 1000 + rng.normal(size=(40, 1)), 3e4 + rng.normal(size=40)
    model = LSSVR(rho=rho, standardize=False).fit(X, t)
    codes = [Fraction(int(c)) for c in np.rint(X[:, 0] / step)]
    targets = [Fraction(int(c)) for c in np.rint(t / step)]
    n, middle, level = len(codes), sum(codes) / 40, sum(targets) / 40
    squares = sum((c - middle) ** 2 for c in codes) + Fraction(rho) / Fraction(step) ** 2
    w = sum((c - middle) * (t - level) for c, t in zip(codes, targets, strict=True)) / squares
    m = round(middle)
    near, rounded = float(level - (middle - m) * w), float(w)  # each rounded once
    assert model.coef_[0] == rounded  # steps of column and target are equal
    assert model.intercept_ == float(level - middle * w) * step
    scores = [float((c - m) * Fraction(rounded) + Fraction(near)) * step for c in codes]
    assert model.predict(X).tolist() == scores
    published = Fraction(float(model.intercept_))
    sums = [float(Fraction(rounded) * c * Fraction(step) + published) for c in codes]
    assert 0 < sum(a != b for a, b in zip(sums, scores, strict=True)) <= n
    assert np.allclose(sums, scores, rtol=1e-12)
