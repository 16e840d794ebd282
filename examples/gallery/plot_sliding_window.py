"""
A window that slides over the weather
=====================================

How warm will it be in a week, from today's rain, wind and temperatures? The
numbers of one day do not say which season it is. A window over the last
month knows: each week seven rows come in and the oldest go out, in one
update, and the model always equals a fit from scratch on the rows in
the window.
"""

import matplotlib.pyplot as plt
import numpy as np

from traceless import LSSVR, SlidingWindow

try:
    from vega_datasets import data  # pip install vega_datasets

    place, path = "Seattle", data.seattle_weather.filepath
    days = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2, 3, 4))
except ImportError:
    place = "nowhere (vega_datasets is not installed)"
    year = np.sin(2 * np.pi * np.arange(1461) / 365.25 - 1.9)[:, None]
    days = 16 + 8 * year + np.random.default_rng(0).normal(0, 3, (1461, 4))

# Rain, highest and lowest temperature, wind; the highest a week later.
X, y = days[:-7], days[7:, 1]

# %%
# Each model is asked about the coming week before it learns it. A window as
# long as the series forgets nothing. ρ = 30 is as strong as 30 rows: much
# for a month, and little for a year.

sizes = {"a month": 30, "a year": 365, "everything": len(X)}
forecasts = {}
for name, size in sizes.items():
    window = SlidingWindow(LSSVR(rho=30), size).fit(X[:7], y[:7])
    weeks = []
    for start in range(7, len(X), 7):
        week = slice(start, start + 7)
        weeks.append(window.predict(X[week]))
        window.partial_fit(X[week], y[week])
    forecasts[name] = np.concatenate(weeks)
    digest = LSSVR(rho=30).fit(X[-size:], y[-size:]).digest()
    print(f"{name}: as a fit from scratch: {window.digest() == digest}")

# %%
# The first year is not judged, since all windows still fill.

plt.rc("axes.spines", top=False, right=False)
figure, (above, below) = plt.subplots(
    2, figsize=(8, 5.4), height_ratios=[2, 1], layout="constrained"
)
above.plot(y[-365:], color="0.75", label=f"{place}, the last year")
label = "forecast a week before, from a month"
above.plot(forecasts["a month"][-365:], color="#1b6ca8", label=label)
above.set(xlabel="day", ylabel="highest temperature (°C)")
above.legend(frameon=False, loc="lower center")

errors = [np.abs(f - y[7:])[365:].mean() for f in forecasts.values()]
bars = below.barh(list(sizes), errors, color="#1b6ca8")
below.bar_label(bars, fmt="%.2f °C", padding=4)
below.set(xlabel="mean error of the forecast (°C)", xlim=(0, 4))
below.invert_yaxis()
plt.show()
