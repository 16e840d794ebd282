"""Speed and memory beside those of peers: `python -m benchmarks.report`, or one of its parts.

Timer, page and the notion of a claim are shared with `papers`.
"""
