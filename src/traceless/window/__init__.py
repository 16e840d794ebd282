"""A window that slides over a stream: the newest rows come in as the oldest go out.

    window = SlidingWindow(PathSVC(), size=500)
    for X, y in stream:
        if window.n_samples_:
            print(window.predict(X))
        window.partial_fit(X, y)

Both happen in one update of the wrapped estimator, whose model is at all times that of a fit
from scratch on the rows in the window. The update is made to a copy of the model, and rows and
model are published together: after an error, and for other threads, they belong together.
"""

from traceless.window.sliding import SlidingWindow

__all__ = ["SlidingWindow"]
