"""The experiments of the papers that traceless builds on, run again and judged.

    python -m papers lee2019 [--quick] [--out FOLDER]
    python -m papers zhu2018 [--quick] [--out FOLDER]
    python -m papers karasuyama2009 [--quick] [--out FOLDER] [--fisher-river CSV]

Each paper is a package: `measure` has the numbers, `draw` the figures, `judge` the criteria and
their thresholds, `paper.toml` what the paper claims and how we tried it. Every figure is written
as PNG and CSV, and one HTML file sets each claim beside what came out here. `claims`, `page` and
`timing` are shared with the benchmarks.
"""
