"""Parse LETOR / svmlight and multi-label text into columns, one block of whole lines at a time, with exact rounding.

Every block ends with a newline, so no loop needs to check for the end of the text.
"""

import numpy as np

from placet.kernels.jit import jit

# Kinds of errors in a line; placet.io.sparse.letor turns these into messages.
GRADE, QID, NO_QID, INDEX, VALUE, FEATURE_RANGE, LABEL, LABEL_RANGE = 1, 2, 3, 4, 5, 6, 7, 8

SPACE, TAB, RETURN, NEWLINE, COLON, HASH, COMMA = 32, 9, 13, 10, 58, 35, 44

MAX_TEN = 280  # largest power of ten in the table; numbers beyond it are left to the slow parser


def _truncated_powers():
    """First 64 bits t of 10^q and the matching binary exponent b: 10^q in [t, t + 1) 2^b, t in [2^63, 2^64)."""
    top, exponent = [], []
    for q in range(-MAX_TEN, MAX_TEN + 1):
        if q >= 0:
            b = (10**q).bit_length() - 64
            t = 10**q >> b if b > 0 else 10**q << -b
        else:
            b = -63 - (10**-q).bit_length()
            t = (1 << -b) // 10**-q
            if t >= 1 << 64:
                b, t = b + 1, t >> 1
        top.append(t)
        exponent.append(b)
    return np.array(top, dtype=np.uint64), np.array(exponent, dtype=np.int64)


TEN_TOP, TEN_EXPONENT = _truncated_powers()
TEN = 10.0 ** np.arange(23)  # exact in float64


@jit()
def count(text):
    """Number of newlines and colons in a block: upper bounds on its rows and values.  O(bytes), vectorized."""
    lines = 0
    colons = 0
    for c in text:
        lines += c == NEWLINE
        colons += c == COLON
    return lines, colons


@jit()
def times_power_of_ten(m, ten):
    """(m 10^ten correctly rounded, True), or (0, False) if 64 bits of the power do not determine the last bit.

    If m < 2^53 and abs(ten) <= 22, one exactly rounded operation suffices (Clinger).  Otherwise h, the upper half of m
    (shifted to 64 bits) times the truncated power, is below the true product by less than 2, so the rounding is certain
    unless the dropped bits are exactly one half or one unit less (about 1 number in 1000).
    """
    if m < 9007199254740992:
        if ten == 0:
            return float(m), True
        if -22 <= ten < 0:
            return m / TEN[-ten], True
        if 0 < ten <= 22:
            return m * TEN[ten], True
    if m == 0:
        return 0.0, True
    if ten < -MAX_TEN or ten > MAX_TEN:
        return 0.0, False
    lead = np.int64(0)
    w = np.uint64(m)
    while w < np.uint64(1) << np.uint64(63):
        w <<= np.uint64(1)
        lead += 1
    t = TEN_TOP[ten + MAX_TEN]
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    w1, w0, t1, t0 = w >> half, w & low, t >> half, t & low
    middle = w1 * t0 + (w0 * t0 >> half)
    cross = w0 * t1 + (middle & low)
    h = w1 * t1 + (middle >> half) + (cross >> half)
    drop = np.uint64(10) if h < np.uint64(1) << np.uint64(63) else np.uint64(11)
    rest = np.int64(h & ((np.uint64(1) << drop) - np.uint64(1)))
    tie = np.int64(np.uint64(1) << (drop - np.uint64(1)))
    if tie - 1 <= rest <= tie:
        return 0.0, False
    kept = np.int64(h >> drop) + (1 if rest > tie else 0)
    power = np.int64(drop) + 64 - lead + TEN_EXPONENT[ten + MAX_TEN]
    if power < -1022 or power > 970:
        return 0.0, False
    # kept < 2^54 and both factors of the power are normal numbers, so each product below is exact
    first = power // 2
    return kept * 2.0**first * 2.0 ** (power - first), True


@jit()
def number(text, p):
    """Decimal at byte p: (value, byte after it, state); state 1: exact, 2: left to the slow parser, 0: not a number.

    Grammar: [+-] digits [. digits] [e [+-] digits], at least one digit before the exponent.  O(digits).
    """
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    m = np.uint64(0)
    start = p
    digits = 0
    ten = 0
    c = text[p]
    while 48 <= c <= 57:
        m = m * np.uint64(10) + np.uint64(c - 48)
        p += 1
        c = text[p]
    digits = p - start
    if c == 46:
        p += 1
        point = p
        c = text[p]
        while 48 <= c <= 57:
            m = m * np.uint64(10) + np.uint64(c - 48)
            p += 1
            c = text[p]
        ten = point - p
        digits += p - point
    if digits == 0:
        return 0.0, p, 0
    if c == 101 or c == 69:
        p += 1
        down = text[p] == 45
        if down or text[p] == 43:
            p += 1
        exponent = 0
        point = p
        c = text[p]
        while 48 <= c <= 57:
            exponent = min(exponent * 10 + (c - 48), 100000)
            p += 1
            c = text[p]
        if p == point:
            return 0.0, p, 0
        ten += -exponent if down else exponent
    if digits > 19:  # the mantissa may have wrapped around
        return 0.0, p, 2
    value, exact = times_power_of_ten(m, ten)
    return (-value if negative else value), p, (1 if exact else 2)


@jit()
def blank(text, p):
    """Position of the first byte from p on that is not a space, tab or carriage return."""
    while text[p] == SPACE or text[p] == TAB or text[p] == RETURN:
        p += 1
    return p


@jit()
def next_line(text, p):
    """Position after the next newline."""
    while text[p] != NEWLINE:
        p += 1
    return p + 1


@jit()
def ends(c):
    """Whether byte c ends a number."""
    return c <= SPACE or c == HASH


@jit()
def is_null(text, p):
    """Whether the word NULL is at p."""
    return text[p] == 78 and text[p + 1] == 85 and text[p + 2] == 76 and text[p + 3] == 76


@jit()
def pairs(text, p, base, limit, null, index, value, slow, nnz, n_slow):
    """Parse ``index:value`` from byte p to the end of the line or a comment; ``base <= index < base + limit``.

    With ``null`` the word NULL is read as NaN.  Returns the byte where parsing stopped, the numbers of values and of
    ``slow`` entries so far, the kind of error (0: none) and the start of its token, the largest column, and whether
    columns ascend.  O(bytes).
    """
    last = -1
    rising = True
    while True:
        p = blank(text, p)
        c = text[p]
        if c == NEWLINE or c == HASH:  # noqa: SIM109  (a tuple test compiles to a loop)
            return p, nnz, n_slow, 0, p, last, rising
        at = p
        k = 0
        while 48 <= c <= 57:
            k = min(k * 10 + (c - 48), 4000000000)
            p += 1
            c = text[p]
        if c != COLON or p == at:
            return p, nnz, n_slow, INDEX, at, last, rising
        k -= base
        if k < 0 or k >= limit:
            return p, nnz, n_slow, FEATURE_RANGE, at, last, rising
        p += 1
        start = p
        if null and is_null(text, p):
            v, p, state = np.nan, p + 4, 1
        else:
            v, p, state = number(text, p)
        if state == 0 or not ends(text[p]):
            return p, nnz, n_slow, VALUE, at, last, rising
        if state == 2:
            slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = nnz, start, p
            n_slow += 1
        if k <= last:
            rising = False
        last = max(last, k)
        index[nnz] = k
        value[nnz] = v
        nnz += 1


@jit()
def query(text, p):
    """``qid:name`` at byte p: (name as a canonical number of at most 18 digits, else -1; its start; its end).

    Start and end are equal if there is no name.
    """
    if text[p] != 113 or text[p + 1] != 105 or text[p + 2] != 100 or text[p + 3] != COLON:
        return -1, p, p
    start = p + 4
    p = start
    q = 0
    while not ends(text[p]):
        digit = 48 <= text[p] <= 57
        q = q * 10 + (text[p] - 48) if digit and q >= 0 and p - start < 18 else -1
        p += 1
    if text[start] == 48 and p - start > 1:
        q = -1
    return q, start, p


@jit()
def skip_empty(text, p, line):
    """Find the next line that is neither blank nor a comment: (its first nonblank byte, its number)."""
    while p < len(text):
        p = blank(text, p)
        if text[p] != NEWLINE and text[p] != HASH:
            break
        p = next_line(text, p)
        line += 1
    return p, line


@jit()
def note(bad, n, line, kind, text, at):
    """Record a bad line; the faulty token extends from ``at`` to the next space."""
    end = at
    while not ends(text[end]):
        end += 1
    bad[n, 0], bad[n, 1], bad[n, 2], bad[n, 3] = line, kind, at, end
    return n + 1


@jit()
def letor(text, base, limit, need_qid, null, grade, qid, token, indptr, index, value, slow, bad):
    """Parse the rows ``grade qid:name index:value ... # comment`` of a block.

    Fills, per row: ``grade``, ``qid`` and ``token`` = (start and end of the query's name, end of the features, line
    from 0); per value: ``index`` (column from 0) and ``value``, with ``indptr`` as in CSR.  ``slow``: (value number,
    or -1 - row for a grade; start; end) of decimals left to the slow parser.  ``bad``: (line, kind, start, end) of
    skipped lines. Returns the numbers of rows, slow entries, bad lines and lines, the largest column, whether every row
    has the same columns 0, 1,
    ..., whether some row's columns do not rise.  O(bytes).
    """
    rows = n_bad = n_slow = nnz = 0
    width = top = -1
    regular, unsorted = True, False
    indptr[0] = 0
    p, line = skip_empty(text, 0, 0)
    while p < len(text):
        first_nnz, first_slow, at = nnz, n_slow, p
        kind = 0
        g, p, state = number(text, p)
        if state == 0 or not ends(text[p]):
            kind = GRADE
        elif state == 2:
            slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = -1 - rows, at, p
            n_slow += 1
        q, q_start, q_end = query(text, blank(text, p))
        if kind == 0 and need_qid and q_start == q_end:
            kind, at = (NO_QID if q_start == blank(text, p) else QID), blank(text, p)
        last, rising = -1, True
        if kind == 0:
            p, nnz, n_slow, kind, at, last, rising = pairs(
                text, q_end, base, limit, null, index, value, slow, nnz, n_slow
            )
        if kind != 0:
            n_bad = note(bad, n_bad, line, kind, text, at)
            nnz, n_slow = first_nnz, first_slow
        else:
            width = nnz if rows == 0 else width
            regular = regular and rising and nnz - first_nnz == width and last + 1 == width
            unsorted = unsorted or not rising
            top = max(top, last)
            grade[rows] = g
            qid[rows] = q
            token[rows, 0], token[rows, 1], token[rows, 2], token[rows, 3] = q_start, q_end, p, line
            rows += 1
            indptr[rows] = nnz
        p, line = skip_empty(text, next_line(text, p), line + 1)
    return rows, n_slow, n_bad, line, top, regular, unsorted


@jit()
def multilabel(text, limit, n_labels, label_ptr, label, line_of, indptr, index, value, slow, bad):
    """Parse the rows ``label,label,... index:value ...`` of a block, indices from 0; a blank line is an empty point.

    ``label`` with ``label_ptr``, and ``index``, ``value`` with ``indptr``, are as in CSR; the other arguments and the
    return value are as in ``letor``.
    """
    rows = n_bad = n_slow = nnz = n_label = line = 0
    top = -1
    unsorted = False
    indptr[0] = label_ptr[0] = 0
    p = 0
    while p < len(text):
        first_nnz, first_slow, first_label, at = nnz, n_slow, n_label, p
        kind = 0
        while kind == 0 and 48 <= text[p] <= 57:
            at = p
            k = 0
            while 48 <= text[p] <= 57:
                k = min(k * 10 + (text[p] - 48), 2147483647)  # exceeds every label, since labels fit in int32
                p += 1
            if text[p] == COLON and n_label == first_label:  # the first feature of a point without labels
                p = at
                break
            if k >= n_labels:
                kind = LABEL_RANGE
            elif text[p] == COMMA and 48 <= text[p + 1] <= 57:
                p += 1
            elif text[p] > SPACE:
                kind = LABEL
            label[n_label] = k
            n_label += 1
        last, rising = -1, True
        if kind == 0:
            p, nnz, n_slow, kind, at, last, rising = pairs(text, p, 0, limit, False, index, value, slow, nnz, n_slow)
        if kind != 0:
            n_bad = note(bad, n_bad, line, kind, text, at)
            nnz, n_slow, n_label = first_nnz, first_slow, first_label
        else:
            unsorted = unsorted or not rising
            top = max(top, last)
            line_of[rows] = line
            rows += 1
            indptr[rows] = nnz
            label_ptr[rows] = n_label
        p = next_line(text, p)
        line += 1
    return rows, n_slow, n_bad, line, top, False, unsorted


@jit()
def scatter(indptr, index, value, X):
    """Write CSR rows into the dense rows of ``X``, which must be zero.  O(values)."""
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            X[r, index[k]] = value[k]
