"""What parallel incremental learning costs on many machines, computed from costs measured on one.

    python -m papers.cost_model [--quick]

measures the costs here and prints the tables of docs/cluster.md. `model` is the computation,
`costs` the measurements, `tables` what is printed. Zhu et al. 2018 (`papers.zhu2018`) is judged
by it.
"""
