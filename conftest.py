"""Examples that train networks are left out where PyTorch is not installed; tests say so one by one."""

from importlib.util import find_spec

NEED_PYTORCH = [
    "src/placet/rank/labels.py",
    "src/placet/rank/neural.py",
    "docs/howto/labels.md",
]
collect_ignore = [] if find_spec("torch") else NEED_PYTORCH


def pytest_report_header() -> str | None:
    return f"PyTorch is not installed: no examples of {', '.join(NEED_PYTORCH)}" if collect_ignore else None
