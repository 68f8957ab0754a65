"""Losses for other training loops: cross-encoders, preference optimization of language models, distillation."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from placet.data.errors import DataError
from placet.rank.torch.native_losses import check_parameters, native_loss


class CrossEncoderLoss(torch.nn.Module):
    """A listwise loss for sentence-transformers cross-encoders, to use in place of their ``ListNetLoss``.

    Parameters
    ----------
    model : CrossEncoder
        A model with one output per pair (``num_labels=1``), called as ``model(**tokens)[0]``.
    loss : str
        A name in ``NATIVE``.
    activation_fn : callable, optional
        Applied to the outputs; the identity by default.
    mini_batch_size : int, optional
        Pairs encoded at once, as in sentence-transformers: the number of queries if None, all pairs if 0 or less.
    params
        Parameters of the loss.

    >>> loss = CrossEncoderLoss(torch.nn.Identity(), "lambdaloss", k=10)  # in place of Identity: a CrossEncoder
    >>> loss.loss, loss.params
    ('lambdaloss', {'k': 10})
    """

    def __init__(
        self,
        model: Any,
        loss: str = "pl-partition",
        *,
        activation_fn: Callable[[Any], Any] | None = None,
        mini_batch_size: int | None = None,
        **params: Any,
    ) -> None:
        super().__init__()
        check_parameters(loss, params)
        if getattr(model, "num_labels", 1) != 1:
            raise ValueError(f"the model has {model.num_labels} outputs; a score needs one: CrossEncoder(num_labels=1)")
        self.model, self.loss, self.params = model, loss, params
        self.activation_fn = torch.nn.Identity() if activation_fn is None else activation_fn
        self.mini_batch_size = mini_batch_size

    def forward(self, inputs: Sequence[Any], labels: Sequence[Any], **unused: Any) -> Any:
        """Mean loss over queries; ``inputs``: queries and their documents, ``labels``: a tensor of grades per query."""
        queries, documents = inputs[0], inputs[1]
        sizes = [len(texts) for texts in documents]
        if len(queries) != len(sizes) or [len(grade) for grade in labels] != sizes:
            raise DataError(
                f"{len(queries)} queries, documents of {len(sizes)} and labels of {len(labels)}; each query needs as "
                "many labels as documents"
            )
        pairs = [(query, text) for query, texts in zip(queries, documents) for text in texts]
        if not pairs:
            raise DataError("no documents in this batch; give at least one query with documents")
        step = len(queries) if self.mini_batch_size is None else self.mini_batch_size
        step = step if step > 0 else len(pairs)
        outputs = torch.cat([self._encode(pairs[at : at + step]) for at in range(0, len(pairs), step)])
        scores = self.activation_fn(outputs)
        grade = torch.cat([torch.as_tensor(one).reshape(-1) for one in labels]).to(scores.device)
        offsets = torch.tensor([0, *sizes]).cumsum(0)
        return native_loss(self.loss, scores, grade, offsets=offsets, reduction="mean", **self.params)

    def _encode(self, pairs: list[tuple[str, str]]) -> Any:
        tokens = self.model.tokenizer(pairs, padding=True, truncation=True, return_tensors="pt")
        return self.model(**tokens.to(self.model.device))[0].view(-1)

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        name = getattr(self.activation_fn, "__name__", type(self.activation_fn).__name__)
        return {"loss": self.loss, "activation_fn": name, "mini_batch_size": self.mini_batch_size, **self.params}


def preference_loss(
    policy_logps: Any,
    reference_logps: Any,
    grade: Any,
    *,
    beta: float = 0.1,
    loss: str = "pl-partition",
    offsets: Any = None,
    mask: Any = None,
    reduction: str = "mean",
    **params: Any,
) -> Any:
    """Preference optimization over k graded answers: a listwise loss of the scores beta (log p - log p_reference).

    ``policy_logps`` and ``reference_logps``: log probabilities of the answers to each prompt, summed over tokens,
    (prompts, k), or (answers,) split by ``offsets``; ``grade``: the same shape, higher is better, equal grades tie
    ("pl-partition" prefers neither order of a tie).  For two answers with different grades this is the DPO loss.

    Returns
    -------
    torch.Tensor
        The loss, with gradients of ``policy_logps``.

    >>> policy, reference = torch.tensor([[-3.0, -4.0]]), torch.tensor([[-3.5, -3.5]])
    >>> value = preference_loss(policy, reference, torch.tensor([[1, 0]]), beta=1.0)
    >>> bool(torch.isclose(value, -torch.nn.functional.logsigmoid(torch.tensor(1.0))))  # (-3 + 3.5) - (-4 + 3.5) = 1
    True
    """
    if not 0 < beta < math.inf:
        raise ValueError(f"beta must be a finite number above 0, not {beta}")
    if policy_logps.shape != reference_logps.shape:
        raise ValueError(
            f"policy_logps have shape {tuple(policy_logps.shape)} and reference_logps {tuple(reference_logps.shape)}"
        )
    scores = beta * (policy_logps - reference_logps)
    return native_loss(loss, scores, grade, offsets=offsets, mask=mask, reduction=reduction, **params)


def permutation_grades(order: Sequence[Any], n: int) -> Any:
    """Grades (n,) from a permutation, best first, for instance to distill a language model's ranking into a ranker.

    Entries are rows, or groups of tied rows.  Rows that are not listed tie below all others.

    Returns
    -------
    torch.Tensor
        A grade per row, higher is better.

    >>> permutation_grades([3, (0, 2)], 5)
    tensor([1, 0, 1, 2, 0])
    """
    groups = [_rows(entry) for entry in order]
    rows = [row for group in groups for row in group]
    outside = [row for row in rows if not 0 <= row < n]
    if outside or len(set(rows)) != len(rows):
        which = outside[0] if outside else next(row for row in rows if rows.count(row) > 1)
        raise DataError(f"row {which} is {'not among' if outside else 'named twice in'} the {n} rows of the list")
    grade = torch.zeros(n, dtype=torch.int64)
    for place, group in enumerate(groups):
        grade[group] = len(groups) - place
    return grade


def _rows(entry: Any) -> list[int]:
    """The row numbers of an entry of a permutation: a row, or a group of rows."""
    group = list(entry) if isinstance(entry, (tuple, list, set, frozenset)) else [entry]
    try:
        return [operator.index(row) for row in group]
    except TypeError:
        raise DataError(
            f"entry {entry!r} of the permutation is neither a row number nor a tuple of them; rows count from 0"
        ) from None
