"""
A raw frame: words, dates, blanks and missing values
====================================================

Encoders and imputers that are fitted to rows remember them. A declared
table learns nothing: what columns mean is part of the model's digest, and
what stands for a missing age is learned, and forgotten, with the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from traceless import LSSVC
from traceless.features import Table

# passengers of a made-up ship
rng = np.random.default_rng(0)
n = 900
ship = pd.DataFrame(
    {
        "booking_id": rng.integers(1000, 1400, n),
        "class": rng.choice(["first", "second", "third"], n),
        "sex": rng.choice(["female", "male"], n),
        "age": rng.normal(30, 14, n).clip(1, 80).round(),
        "fare": rng.lognormal(3, 1, n).round(2),
        "port": rng.choice(["Cherbourg", "Southampton"], n),
    }
)
odds = (
    2.0 * (ship.sex == "female")
    + (ship["class"] == "first")
    - ship.age / 40
)
lived = odds + rng.logistic(0, 0.7, n) > 0.4
ship["survived"] = np.where(lived, "yes", "no")
ship.loc[rng.random(n) < 0.2, "age"] = np.nan
ship.loc[rng.random(n) < 0.02, "port"] = None

table = Table.suggest(ship, target="survived")
print(table)

# %%
# The usual pipeline of fitted parts, beside it:

words, numbers = ["class", "sex", "port"], ["age", "fare"]
pipe = make_pipeline(
    make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), words),
    ),
    RidgeClassifier(),
)
y = ship.survived
ours = cross_val_score(LSSVC(table), ship, y, cv=10).mean()
theirs = cross_val_score(pipe, ship, y, cv=10).mean()
print(f"accuracy: table {ours:.3f}, pipeline {theirs:.3f}")

# %%
# A booking is forgotten, frame and all. The proof is a fit from scratch.

clf = LSSVC(table).fit(ship, y)
gone = ship.booking_id == ship.booking_id[0]
clf.forget(ship[gone], y[gone])
again = LSSVC(table).fit(ship[~gone], y[~gone])
same = clf.digest() == again.digest()
print(f"{gone.sum()} rows forgotten, the same digest: {same}")

names, effects = table.get_feature_names_out(), clf.coef_[0]
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.barh(names[::-1], effects[::-1])
ax.set(xlabel="coefficient for survival")
plt.show()
