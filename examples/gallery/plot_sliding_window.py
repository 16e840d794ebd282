"""
A window that slides over the weather
=====================================

How warm will it be in a week, from today's rain, wind and temperatures? The numbers of one day
do not say which season it is. A window over the last month knows: each week seven rows come in
and the oldest go out, in one update, and the model is always that of a fit from scratch on the
rows in the window.
"""

import matplotlib.pyplot as plt
import numpy as np

from traceless import LSSVR, SlidingWindow

try:
    from vega_datasets import data  # pip install 'traceless[experiments]'

    place, path = "Seattle", data.seattle_weather.filepath
    days = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2, 3, 4))
except ImportError:
    place = "nowhere (drawn with a seed: vega_datasets is not installed)"
    year = np.sin(2 * np.pi * np.arange(1461) / 365.25 - 1.9)[:, None]
    days = 16 + 8 * year + np.random.default_rng(0).normal(0, 3, (1461, 4))

X, y = days[:-7] / 10, days[7:, 1]  # precipitation, highest, lowest, wind; the highest in a week

# %%
# Each model is asked about the coming week before it learns it. A window longer than the series
# forgets nothing.

sizes = {"a month": 30, "a year": 365, "everything": len(X)}
windows = {name: SlidingWindow(LSSVR(), size).fit(X[:7], y[:7]) for name, size in sizes.items()}
forecasts: dict[str, list[float]] = {name: [] for name in sizes}
for start in range(7, len(X), 7):
    week = slice(start, start + 7)
    for name, window in windows.items():
        forecasts[name] += window.predict(X[week]).tolist()
        window.partial_fit(X[week], y[week])

month = windows["a month"]
print("no trace of older rows:", month.digest() == LSSVR().fit(X[-30:], y[-30:]).digest())

# %%
# The first year is not judged, since all windows still fill.

figure, (above, below) = plt.subplots(
    2, figsize=(8, 5.6), layout="constrained", height_ratios=[3, 2]
)
last = np.arange(len(X) - 365, len(X))
above.plot(y[last], color="0.75", label=f"{place}, the last year")
above.plot(
    np.array(forecasts["a month"])[last - 7],
    color="#1b6ca8",
    label="forecast a week before, from a month",
)
above.set(xlabel="day", ylabel="highest temperature (°C)")
above.legend(frameon=False, loc="lower center")
errors = [np.abs(np.array(f) - y[7:])[365:].mean() for f in forecasts.values()]
bars = below.barh(list(sizes), errors, color="#1b6ca8")
below.bar_label(bars, [f"{e:.2f} °C" for e in errors], padding=4)
below.set(xlabel="mean error of the forecast (°C)", xlim=(0, 1.15 * max(errors)))
below.invert_yaxis()
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
