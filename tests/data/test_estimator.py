"""Parameters of models: read, set, copied, checked and shown without scikit-learn, and as scikit-learn expects."""

import pytest
from sklearn.base import clone

from placet.aggregate import MODELS, Mixture
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Rankings

BALLOTS = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])


@pytest.mark.parametrize("name", MODELS)
def test_models_are_copied_by_their_own_means_and_by_those_of_scikit_learn(name):
    model = MODELS[name]().fit(BALLOTS)
    for copy in (model.unfitted(), clone(model)):
        assert type(copy) is type(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "consensus_")
    assert repr(model) == f"{type(model).__name__}()"


def test_parameters_are_shown_and_set_by_name():
    model = BradleyTerry(ties="davidson", prior=2.0)
    assert repr(model) == "BradleyTerry(ties='davidson', prior=2.0)"
    assert model.set_params(ties="auto", prior="learn").get_params() == BradleyTerry().get_params()
    with pytest.raises(
        ValueError, match=r"parameter 'tie' is unknown to BradleyTerry .did you mean 'ties'..; choose from ties, "
    ):
        model.set_params(tie="none")


def test_a_model_in_a_model_is_reached_by_both_names():
    mixture = Mixture(BradleyTerry(prior=2.0), k=2)
    assert mixture.get_params()["model__prior"] == 2.0
    assert "model__prior" not in mixture.get_params(deep=False)
    copy = mixture.unfitted(k=3).set_params(model__prior=5.0)
    assert (copy.k, copy.model.prior, mixture.model.prior) == (3, 5.0, 2.0)
    with pytest.raises(ValueError, match="'width' is unknown to BradleyTerry"):
        copy.set_params(model__width=1.0)


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        (
            "bradley-terry",
            {"ties": "elo"},
            r"ties 'elo' is unknown; choose from auto, none, rao-kupper, davidson",
        ),
        (
            "plackett-luce",
            {"stderr": "robust"},
            r"stderr 'robust' is unknown; choose from auto, observed, sandwich, None",
        ),
        ("mallows", {"center": "best"}, "center 'best' is unknown; choose from"),
        ("mpm", {"strength": 3}, "parameter strength of .* must be 'binary' or 'difference' or 'rating', not 3"),
        ("pmop", {"max_iter": 1.5}, "parameter max_iter of 'pmop' must be a whole number, not 1.5"),
    ],
)
def test_a_fit_checks_parameters_against_the_signature(name, wrong, words):
    with pytest.raises(ValueError, match=words):
        MODELS[name](**wrong).fit(BALLOTS)
