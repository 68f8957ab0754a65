"""Text on the colors of the heat maps can be read over the whole scale, its middle included (WCAG 2, 4.5 to 1)."""

import re
from pathlib import Path

import numpy as np
import pytest

import placet

HOME = Path(placet.__file__).parent
LEAST = 4.5


def rgb(text):
    """A color of CSS, as #abc, #aabbcc, a name that the maps use, or numbers with commas."""
    text = {"white": "#fff"}.get(text, text)
    if not text.startswith("#"):
        return np.array(text.split(","), float)
    digits = text[1:] if len(text) == 7 else "".join(2 * c for c in text[1:])
    return np.array([int(digits[k : k + 2], 16) for k in (0, 2, 4)], float)


def luminance(color):
    x = color / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    low, high = sorted([float(luminance(one)), float(luminance(other))])
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast(rgb("#000"), rgb("white")) == pytest.approx(21)
    assert contrast(rgb("#777777"), rgb("#fff")) == pytest.approx(
        4.48, abs=0.005
    )  # the well-known gray that just fails


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("side", "color"), [("up", "accent"), ("down", "other")])
def test_the_page(theme, side, color):
    css = (HOME / "report" / "static" / "shared.css").read_text()
    blocks = re.findall(r":root\{([^}]*)\}", css)
    assert len(blocks) == 2
    look = dict(re.findall(r"--(\w+):([^;}\s]+)", blocks[theme]))
    assert f".heat .{side}{{background:rgba(var(--{color}),calc(var(--deep)*var(--p)))}}" in css
    ink, paper, full = (rgb(look[name]) for name in ("ink", "paper", color))
    for p in np.linspace(0, 1, 101):
        alpha = float(look["deep"]) * p
        assert contrast(ink, alpha * full + (1 - alpha) * paper) >= LEAST, p


def test_the_studio():
    script = (HOME / "studio" / "static" / "charts.js").read_text()
    wins = script[script.index("export function winsMap") :].partition("\n}\n")[0]
    scale = re.search(r'type: "diverging-pow", .*?range: \[([^\]]+)\], interpolate: "rgb"', wins)
    text = re.search(r'Plot\.text\(cells, \{.*?fill: "(\w+)"', wins)
    assert scale
    assert text
    assert "opacity" not in wins.lower()
    low, middle, high = (rgb(one.strip(' "')) for one in scale[1].split(","))
    for t in np.linspace(0, 1, 101):
        for end in (low, high):
            assert contrast(rgb(text[1]), t * end + (1 - t) * middle) >= LEAST, t
