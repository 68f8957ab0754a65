"""Values as JSON: NumPy numbers become numbers, NaN becomes null, other things text."""

import json
from typing import Any

from placet.escaping import in_json


def json_text(value: Any) -> str:
    """A value as JSON text; NaN becomes null."""
    return in_json(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Convert to JSON types: NumPy numbers become numbers, NaN becomes null, keys become text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
