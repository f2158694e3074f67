"""The bench: every attune kernel beside PyTorch's attention, in one run (docs/bench.md).

Only the modules that run on the GPU import torch: `device`, `floors`, `inputs`, `reference`, `check`, `graph`,
`latency`, `row` and `contestants`.
"""
