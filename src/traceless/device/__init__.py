"""Rows on a GPU: codes, exact sums, exact predictions and exact solutions where the rows are.

Only `tensors` may be imported without torch; everything else is, once a tensor has come.
"""
