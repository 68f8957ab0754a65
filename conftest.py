"""Examples that train networks are left out where PyTorch is not installed; tests say so one by one.

Linear algebra has one thread in each process of the tests: the idle threads of one would spin on the core of another.
"""

import gc
import os
from importlib.util import find_spec

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported; also read by OpenBLAS

NEED_PYTORCH = [
    "src/placet/rank/multilabel/label_ranker.py",
    "src/placet/rank/torch/native_losses.py",
    "src/placet/rank/torch/neural.py",
    "src/placet/rank/torch/training_adapters.py",
    "docs/howto/labels.md",
]
LEFT_OUT = [] if find_spec("torch") else NEED_PYTORCH
collect_ignore = ["docs/conftest.py", "tests/conftest.py", *LEFT_OUT]  # no examples in the first two, and one name


def pytest_report_header() -> str | None:
    return f"PyTorch is not installed: no examples of {', '.join(LEFT_OUT)}" if LEFT_OUT else None


def pytest_collection_finish() -> None:
    """What collection made stays to the end: looking for garbage among it costs a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
