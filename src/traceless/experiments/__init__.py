"""The experiments of the papers that traceless builds on, run again and judged.

    python -m traceless.experiments lee2019 [--quick] [--out FOLDER]
    python -m traceless.experiments zhu2018 [--quick] [--out FOLDER]
    python -m traceless.experiments karasuyama2009 [--quick] [--out FOLDER] [--fisher-river CSV]

Every figure is written as PNG and CSV, and one HTML file sets what the paper claims
beside what came out here. Verdicts are computed from the numbers by criteria that the
report states (`traceless.experiments.verdict`).
"""
