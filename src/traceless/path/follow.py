"""Follow the path of the hinge SVM from θ = 0 to θ = 1, event by event.

Fit, add, remove, other bounds and repair differ only in what moves (`Road.rate`, `shift`);
the loop below does not know which it is.
"""

from __future__ import annotations

import numpy as np

from traceless.path.compiled import compiled
from traceless.path.road import (
    DONE,
    DRIFT,
    LIMIT,
    NEED_ROOM,
    NEED_ROW,
    STALLED,
    STALLS,
    STEPS,
    STUCK,
    THETA,
    TOO_LONG,
    WANTED,
    K,
    Road,
)
from traceless.path.steps import (
    advance,
    enter,
    finish,
    first_elsewhere,
    first_on_margin,
    gradient_rates,
    idle,
    leave,
    margin_direction,
)


@compiled
def follow(road: Road) -> int:
    """Follow the path until it is DONE, or say why not; it can be called again to go on."""
    while True:
        k = road.count[K]
        if road.count[STEPS] >= road.count[LIMIT]:
            return TOO_LONG
        if k + 1 >= len(road.dc):
            return NEED_ROOM
        run, db = 1.0, 0.0
        if k > 0:
            db = margin_direction(road)
        elif not idle(road):  # an empty margin: b alone moves, until it is not empty
            run, db = 0.0, np.sign(road.value[DRIFT])
        most = max(1.0 - road.value[THETA], 0.0) if run > 0.0 else np.inf
        step, place, upper = first_on_margin(road, most)
        spread = gradient_rates(road, db, run)
        step, who = first_elsewhere(road, step, spread, abs(db), run)
        if not np.isfinite(step) or step < 0.0:
            return STUCK
        if who >= 0 and road.line[who] < 0:
            road.count[WANTED] = who
            return NEED_ROW
        advance(road, step, db, run)
        if who < 0 and place < 0:
            finish(road)
            return DONE
        if who >= 0:
            enter(road, who)
        else:
            leave(road, place, upper)
        road.count[STEPS] += 1
        road.count[STALLS] = road.count[STALLS] + 1 if step <= 1e-15 else 0
        if road.count[STALLS] > 60 + 2 * k:
            return STALLED
