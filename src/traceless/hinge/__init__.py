"""Hinge-loss models: the rows held, the binary problems they make, and what these answer.

`settings` has the parameters, and those that follow from the rows; `held_rows` finds rows again,
`committee` changes all binary problems together or none, `model` is both, solved; `voting` and
`answers` turn its values into classes, `given_kernel` is for kernel matrices that are given.
`traceless.path` solves one binary problem; it and `model` are compiled by numba, so nothing is
imported here.
"""
