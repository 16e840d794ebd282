"""Follow the path of the hinge SVM from θ = 0 to θ = 1, event by event.

Fit, add, remove, other bounds and repair differ only in what moves (rates and shifts); the
loop below does not know which it is. What is frequent is done here, in compiled code; what is
rare it asks its caller to do (`traceless.path.events`, `traceless.path.window`), then to be
called again.
"""

from __future__ import annotations

import numpy as np

from traceless.path.compiled import compiled
from traceless.path.factor import bordered, delete, forward, grow
from traceless.path.road import (
    CLOSE,
    COLUMN,
    DC,
    DIAGONAL,
    DONE,
    DRIFT,
    ENTER,
    EVENTS,
    FEW,
    FRESH,
    HEAP,
    HORIZON,
    LEAVE,
    LIMIT,
    LINE,
    MEMBERS,
    NEED_ROOM,
    NEED_ROW,
    NEXT,
    OPEN,
    PULL,
    RATE,
    RELEASE,
    RHO,
    STALLED,
    STALLS,
    STEPS,
    STUCK,
    THETA,
    TOO_LONG,
    TURN,
    WANTED,
    WATCHED,
    K,
    Road,
    Y,
)
from traceless.path.steps import (
    NOISE,
    advance,
    first_elsewhere,
    first_on_margin,
    joined,
    left,
    rates,
)

LONGEST = 100  # events in one window: each may add a row and a column to `packed`


@compiled
def follow(road: Road) -> int:
    """Follow the path until it is DONE, or say what it needs to go on.

    Long on purpose: what calls the functions of the factor stands here and not in functions of
    its own, since numba would compile those once more on every level.
    """
    count, value = road.count, road.value
    while True:
        k, watching = count[K], count[WATCHED] >= 0
        # is it allowed, and able, to go on?
        if count[STEPS] >= count[LIMIT]:
            return TOO_LONG
        if count[STALLS] > 60 + 2 * k:
            return STALLED
        if k + 1 >= road.room.shape[1]:
            return NEED_ROOM
        # the point that the last step has led to joins the margin
        if count[NEXT] >= 0:
            who = count[NEXT]
            count[NEXT] = -1
            row, column = road.gram[road.at[LINE, who]], road.room[COLUMN]
            for i in range(k):
                column[i] = row[road.at[MEMBERS, i]] + value[RHO]
            forward(road.R, k, column)
            if grow(road.R, k, column, road.x[DIAGONAL, who] + value[RHO]):
                joined(road, who)
                continue
            count[WANTED] = who
            return ENTER
        # windows
        if count[FRESH] > 0 and count[FEW] > 0:
            count[FRESH] = 0
            return OPEN
        if watching and (count[EVENTS] >= LONGEST or value[THETA] >= value[HORIZON]):
            return TURN
        # a direction, and the first event along it
        run, db = 1.0, 0.0
        if k > 0:
            for i in range(k):
                m = road.at[MEMBERS, i]
                road.room[DC, i] = -road.x[Y, m] * road.x[DRIFT, m]
            db = bordered(road.R, k, value[RHO], -value[PULL], road.room)
        elif abs(value[PULL]) > NOISE * value[HEAP]:
            run, db = 0.0, np.sign(value[PULL])  # an empty margin: b alone, until it is not
        most = max(1.0 - value[THETA], 0.0) if run > 0.0 else np.inf
        step, place, upper = first_on_margin(road, most)
        rates(road, db, run)
        step, who = first_elsewhere(road, step, abs(db), run)
        at_end = who < 0 and place < 0
        if watching and (at_end or not np.isfinite(step)):
            return CLOSE  # all are looked at before the last step
        if not np.isfinite(step):
            return STUCK
        if who >= 0 and road.at[LINE, who] < 0:
            count[WANTED] = who
            return NEED_ROW
        # go there, and let it happen
        advance(road, step, db, run)
        if at_end:
            return DONE
        count[STEPS] += 1
        count[EVENTS] += 1
        count[STALLS] = count[STALLS] + 1 if step <= 1e-15 else 0
        if who >= 0:
            if road.x[RATE, who] != 0.0:
                count[WANTED] = who
                return RELEASE
            count[NEXT] = who
        elif road.x[RATE, road.at[MEMBERS, place]] != 0.0:
            count[WANTED] = place + k if upper else place
            return LEAVE
        else:
            delete(road.R, k, place, road.room[COLUMN])
            left(road, place, upper)
        count[FRESH] = not watching and run > 0.0
