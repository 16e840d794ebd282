"""Costs of which every prediction can be computed by hand."""

import dataclasses

from papers.cost_model.model import Costs, Engine, Handling, Model

ONE = Handling(add=1.0, dump=1.0, load=1.0, size=8.0)
HAND = Costs(
    gather={"row": 1.0, "row·J": 0.0, "row·J²": 0.1, "m·J²": 1.0},
    solve={
        "pooled": {"J³": 1.0, "J²": 0.0, "K·J²": 0.0, "K·J": 1.0},
        "shared": {"J³": 1.0, "J²": 0.0, "K·J²": 2.0, "K·J": 0.0},
        "one_vs_rest": {"K·J³": 1.0, "K·J²": 0.0, "K·J": 0.0},
    },
    narrow=ONE,
    wide=dataclasses.replace(ONE, add=101.0),
    wide_solve=7.0,
    file=1e-9,
    dispatch=0.0,
    mean_square=1.0,
)
MODEL = Model(HAND, Engine(byte=0.5, round_=1000.0))
