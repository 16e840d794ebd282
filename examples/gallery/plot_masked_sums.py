"""
What a coordinator sees of a hospital
=====================================

Four hospitals send what they have learned to a coordinator, in a round of
`traceless.federation`. Each hides its sums behind masks that cancel in the
total, so a single message is noise, and the total is that of a plain merge.
"""

import matplotlib.pyplot as plt
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
)
from sklearn.datasets import load_breast_cancer

from traceless import LSSVC
from traceless.federation import Agreement, Coordinator, Site, public_key

X, y = load_breast_cancer(return_X_y=True)
names = ["east", "north", "south", "west"]
pieces = {
    name: LSSVC().fit(X[k::4], y[k::4]).knowledge_
    for k, name in enumerate(names)
}
keys = {name: Ed25519PrivateKey.generate() for name in names}
terms = Agreement.like(
    pieces["east"], {name: public_key(keys[name]) for name in names}
)

sites = {
    name: Site(terms, name, keys[name], pieces[name]) for name in names
}
coordinator, seen = Coordinator(terms), {}
letters = [site.start() for site in sites.values()]
while coordinator.step:
    for letter in letters:
        seen[coordinator.take(letter), coordinator.step] = letter
    letters = [
        sites[name].answer(told)
        for name, told in coordinator.next().items()
    ]

# %%
# The total is the plain merge.

east, *others = pieces.values()
print("as a plain merge:", coordinator.knowledge == sum(others, east))

# %%
# The sums of the east, the same sums as they travel, and the total of all.
# Each point is one number of the triangle.

size = pieces["east"].total.shape[-1]
lower = np.tril_indices(size)
sent = np.frombuffer(
    seen["east", "sums"][-8 * (len(lower[0]) + 2) :], np.int64
)[:-2]  # and counts
uploaded = np.zeros((size, size))
uploaded[lower] = sent
shown = {
    "its sums": np.tril(pieces["east"].total.astype(float)),
    "its message": uploaded,
    "the total": np.tril(coordinator.knowledge.total.astype(float)),
}
figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained")
for ax, (title, numbers) in zip(axes, shown.items(), strict=True):
    drawn = np.ma.masked_array(
        np.sign(numbers) * np.log2(1 + abs(numbers)),
        ~np.tri(size, dtype=bool),
    )
    ax.imshow(drawn, cmap="RdBu", vmin=-63, vmax=63)
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
plt.show()
