"""Standard errors of a mixture: the observed information, reduced by the uncertainty of memberships (Louis).

With r_nk the membership of voter n, g_nk the gradient of its log likelihood in the parameters of group k, H_k the
information of group k with voters weighted by r_nk, and shares as the softmax of logits, the joint information is

    blocks(H_1, ..., H_k, N (diag(share) - share share')) - sum_n count_n Cov(s_nk),

where s_nk is the gradient of the complete log likelihood if n belonged to k, and the covariance is under r_n.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_matrix, diags, hstack

from placet.aggregate.likelihood.information import WAY_OUT, WHAT, inverse_of
from placet.aggregate.mixture.em import MixtureFit
from placet.aggregate.mixture.voters import Family
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square

MOST_UNKNOWNS = 3000
InformationOf = Callable[[Family, MixtureFit, Floats], Floats]


def observed_information(family: Family, found: MixtureFit, count: Floats) -> Floats:
    """(k size + k, k size + k): the parameters of each group in turn, then the logits of the shares."""
    shares, r = found.shares, found.membership
    k = len(shares)
    gradients = [family.gradient(state) for state in found.states]
    complete = [family.information(count * r[:, g], state) for g, state in enumerate(found.states)]
    n = float(count.sum())
    H = block_diag(*complete, n * (np.diag(shares) - np.outer(shares, shares)))
    mean = hstack([diags(r[:, g]) @ gradients[g] for g in range(k)] + [csr_matrix(r - shares)]).tocsr()
    H += (mean.T @ diags(count) @ mean).toarray()
    size = family.size
    for g in range(k):  # minus the mean over groups of the outer products of s_nk = (g_nk in block k, e_k - share)
        own = slice(g * size, (g + 1) * size)
        weighted = diags(count * r[:, g]) @ gradients[g]
        unit = np.eye(k)[g] - shares
        H[own, own] -= (gradients[g].T @ weighted).toarray()
        cross = np.outer(np.asarray(weighted.sum(axis=0)).ravel(), unit)
        H[own, k * size :] -= cross
        H[k * size :, own] -= cross.T
        H[k * size :, k * size :] -= float(count @ r[:, g]) * np.outer(unit, unit)
    return (H + H.T) / 2


def regular_information(family: Family, found: MixtureFit, count: Floats) -> Floats:
    """The observed information, in which a shift of all logits, which changes nothing, has a curvature, too."""
    H, k = observed_information(family, found, count), len(found.shares)
    H[-k:, -k:] += max(float(count.sum()), 1.0) / k
    return H


def mixture_covariance(
    family: Family,
    found: MixtureFit,
    count: Floats,
    information: InformationOf = regular_information,
    moves: Callable[[Floats], Floats] | None = None,
) -> tuple[list[Floats] | None, Floats | None, list[str]]:
    """Covariance (size, size) of each group's parameters, covariance (k, k) of the shares, and notes.

    ``moves(C)`` (k size + k, ...), C being the inverse of the information, are further independent movements of all
    unknowns by one standard deviation.
    """
    k, size = len(found.shares), family.size
    if k * size > MOST_UNKNOWNS:
        return None, None, [f"more than {MOST_UNKNOWNS} unknowns: no standard errors; a bootstrap gives them"]
    refuse_square(k * size, WHAT, WAY_OUT)
    try:
        C = inverse_of(information(family, found, count))
    except np.linalg.LinAlgError:
        C = None
    if C is None or not np.isfinite(C).all():
        return (
            None,
            None,
            [
                "no standard errors: the information matrix is not positive definite, as where a group has hardly any "
                "voters or two groups are alike; try fewer groups"
            ],
        )
    if moves is not None:
        more = moves(C)
        C = C + more @ more.T
    slope = np.diag(found.shares) - np.outer(found.shares, found.shares)
    blocks = [C[g * size : (g + 1) * size, g * size : (g + 1) * size] for g in range(k)]
    return blocks, slope @ C[k * size :, k * size :] @ slope, []
