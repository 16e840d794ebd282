"""Follow the path of the hinge SVM from θ = 0 to θ = 1, event by event.

Fit, add, remove, other bounds and repair differ only in what moves (rates and shifts); the
loop below does not know which it is.
"""

from __future__ import annotations

import numpy as np

from traceless.path.compiled import compiled
from traceless.path.events import enter, leave
from traceless.path.road import (
    DONE,
    EVENTS,
    LIMIT,
    LINE,
    NEED_ROOM,
    NEED_ROW,
    PULL,
    STALLED,
    STALLS,
    STEPS,
    STUCK,
    THETA,
    TOO_LONG,
    WANTED,
    WATCHED,
    K,
    Road,
)
from traceless.path.steps import (
    advance,
    finish,
    first_elsewhere,
    first_on_margin,
    idle,
    margin_direction,
    rates,
)
from traceless.path.window import close_window, open_window, window_is_over


@compiled
def follow(road: Road) -> int:
    """Follow the path until it is DONE, or say why not; it can be called again to go on."""
    while True:
        k = road.count[K]
        if road.count[STEPS] >= road.count[LIMIT]:
            return TOO_LONG
        if k + 1 >= road.room.shape[1]:
            return NEED_ROOM
        if road.count[WATCHED] >= 0 and window_is_over(road):
            close_window(road)
        run, db = 1.0, 0.0
        if k > 0:
            db = margin_direction(road)
        elif not idle(road):  # an empty margin: b alone moves, until it is not empty
            run, db = 0.0, np.sign(road.value[PULL])
        most = max(1.0 - road.value[THETA], 0.0) if run > 0.0 else np.inf
        step, place, upper = first_on_margin(road, most)
        rates(road, db, run)
        step, who = first_elsewhere(road, step, abs(db), run)
        at_end = who < 0 and place < 0
        if road.count[WATCHED] >= 0 and (at_end or not np.isfinite(step)):
            close_window(road)  # look at all before the last step
            continue
        if not np.isfinite(step):
            return STUCK
        if who >= 0 and road.at[LINE, who] < 0:
            road.count[WANTED] = who
            return NEED_ROW
        advance(road, step, db, run)
        if at_end:
            finish(road)
            return DONE
        road.count[STEPS] += 1
        road.count[EVENTS] += 1
        if who >= 0:
            enter(road, who)
        else:
            leave(road, place, 1 if upper else 0)
        road.count[STALLS] = road.count[STALLS] + 1 if step <= 1e-15 else 0
        if road.count[STALLS] > 60 + 2 * k:
            return STALLED
        if road.count[WATCHED] < 0 and run > 0.0:
            open_window(road)
