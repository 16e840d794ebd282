"""
A model that grows, stage by stage
==================================

Lee et al. (2019) teach a model the digits in pairs, and after each pair ask
it about all ten (their Fig. 1a). The question is whether a digit is odd, so
a model that has seen only some of the digits has to guess for the others.
Here are the same five stages on scikit-learn's digits. Two more follow: a
batch with wrong labels, and its removal.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from traceless import LSSVC
from traceless.displays import HistoryDisplay
from traceless.features import RandomFourier

X, digits = load_digits(return_X_y=True)
X, X_test, digits, asked = train_test_split(X, digits, random_state=0)
y, y_test = digits % 2, asked % 2

# %%
# A step of a history has a name, a method, and its arguments. The display
# goes through them with a copy of the model, and scores it after each.

steps = []
for first in range(0, 10, 2):
    pair = digits // 2 == first // 2
    name = f"{first} and {first + 1}"
    steps.append((name, "partial_fit", (X[pair], y[pair])))

wrong = X[:400], 1 - y[:400]
steps += [
    ("400 wrong labels", "partial_fit", wrong),
    ("without them", "forget", wrong),
]

model = LSSVC(RandomFourier(300, gamma=0.0004, random_state=0))
display = HistoryDisplay.from_estimator(model, steps, X_test, y_test)
plt.show()

# %%
# Nothing is lost when a pair is added, and nothing is left of the wrong
# labels: the last model is the one before them, to the bit, so the two
# scores are not just close.

print("the same score:", display.scores[-1] == display.scores[-3])
