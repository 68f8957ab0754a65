"""How a consensus shows itself in notebooks."""

import re

import pytest

from placet.aggregate import Consensus, ConsensusSet, consensus
from placet.aggregate.result.difference import difference
from placet.aggregate.result.display import MOST_ROWS
from placet.data import Comparisons

NASTY = "<script>alert(1)</script>$x$"


def votes(names):
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return Comparisons.from_battles([a for a, _ in pairs] * 3, [b for _, b in pairs] * 3, ["a", "a", "b"] * len(pairs))


def test_a_notebook_shows_the_board_with_bars():
    result = consensus(votes(["ant", "bee", NASTY]), "bradley-terry")
    html = result._repr_html_()
    assert "<script" not in html
    assert "alert(1)" in html
    assert html.count("<svg") == 3
    assert [name in html for name in ("ant", "bee", "bradley-terry", "95% intervals")] == [True] * 4
    low, high = result.interval()
    widths = [float(x) for x in re.findall(r'<rect x="[-\d.]+%" width="([\d.]+)%" y="4"', html)]
    order = result.order
    ratio = (high[order[0]] - low[order[0]]) / (high[order[1]] - low[order[1]])
    assert widths[0] / widths[1] == pytest.approx(ratio, rel=0.01)


def test_without_errors_or_items_it_still_shows():
    plain = Consensus(("a", "b"), [2.0, 1.0], method="borda")._repr_html_()
    assert "interval" not in plain
    assert "±" not in plain
    assert "<p>" in Consensus((), [], method="borda")._repr_html_()
    many = Consensus(tuple(range(100)), range(100), method="borda")._repr_html_()
    assert many.count("<tr>") == MOST_ROWS + 1
    assert "of 100 items" in many


def test_a_notebook_shows_every_board_of_a_set():
    both = consensus({"cats": votes(["ant", "bee"]), NASTY: votes(["cow", "dog", NASTY])}, "bradley-terry")
    html = both._repr_html_()
    assert "<script" not in html
    assert html.count("<details") == 2
    assert html.count("<details open") == 1
    assert html.count("<svg") == 5
    many = ConsensusSet({k: Consensus(("a",), [1.0], method="borda") for k in range(30)}, method="borda")
    assert "the first 20 of 30" in many._repr_html_()


def test_a_notebook_shows_what_changed():
    names = ["ant", "bee", NASTY]
    first, second = consensus(votes(names), "bradley-terry"), consensus(votes(names[::-1]), "bradley-terry")
    found = difference(first, second)
    html = found._repr_html_()
    assert "<script" not in html
    assert html.count("<svg") == 3
    assert "1 → " in html
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [str(second.items[k]) for k in second.order[::-1]]
    number = {name: k for k, name in enumerate(found.items)}
    shown = [found.change[number[second.items[k]]] for k in second.order[::-1]]
    assert axes.lines[1].get_xdata().tolist() == shown
    axes.figure.clear()
    plain = difference(
        Consensus(("a", "b"), [2.0, 1.0], method="borda"), Consensus(("b", "a"), [2.0, 1.0], method="borda")
    )
    assert "<svg" not in plain._repr_html_()
    with pytest.raises(ValueError, match="ranks alone"):
        plain.plot()


def test_a_notebook_shows_an_audit():
    from placet.axioms import audit
    from placet.data import Rankings

    html = audit(Rankings.from_orders([["ant", NASTY], ["ant", NASTY], [NASTY, "ant"]]), "borda")._repr_html_()
    assert "<script" not in html
    assert html.count("<tr>") > 3
    assert "comes first" in html


def test_plot_draws_every_board_of_a_set():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    both = consensus({"cats": votes(["ant", "bee"]), NASTY: votes(["cow", "dog", NASTY])}, "bradley-terry")
    axes = both.plot(level=0.9)
    assert [one.get_title().partition(" ")[2] for one in axes] == ["cats", NASTY]
    assert [len(one.lines[0].get_xdata()) for one in axes] == [2, 3]
    axes[0].figure.canvas.draw()
    assert len(ConsensusSet({}, method="borda").plot()) == 1
    plt.close("all")


def test_plot_draws_every_item_at_its_score():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    result = consensus(votes(["ant", "bee", NASTY]), "bradley-terry")
    axes = result.plot(level=0.9)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [str(result.items[k]) for k in result.order[::-1]]
    assert axes.lines[0].get_xdata().tolist() == result.scores[result.order[::-1]].tolist()
    assert "90%" in axes.get_xlabel()
    same = Consensus(("a", "b"), [2.0, 1.0], method="borda").plot(axes=plt.subplots()[1])
    assert same.get_xlabel() == "score"
    ordered = Consensus(("a", "b", "c"), [-1.0, 0.0, -1.0], method="irv").plot(axes=plt.subplots()[1])
    assert ordered.get_xlabel() == "rank"
    assert ordered.lines[0].get_xdata().tolist() == [2, 2, 1]
    assert ordered.xaxis_inverted()
    ordered.figure.canvas.draw()
    assert {tick.get_text() for tick in ordered.get_xticklabels()} <= {"0", "1", "2", "3"}
    axes.figure.savefig("/dev/null", format="png")
    plt.close("all")
