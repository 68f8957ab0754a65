"""Relations from the files beside LETOR sets: every layout, what is left out, wrong lines, joining, and use."""

import numpy as np
import pytest

import placet
from placet.data import DataError
from placet.rank import ContinuousCRF, LinearRanker, ListwiseReranker

ROWS = """2 qid:7 1:1 2:0 #docid = A
0 qid:7 1:0 2:1 #docid = B
1 qid:7 1:0.5 2:0.5 #docid = C
1 qid:9 1:0.2 2:0.1 #docid = B
0 qid:9 1:0.9 2:0.3 #docid = D
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "S1.txt").write_text(ROWS)

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def read(files, **relations):
    rows = files("S1.txt", ROWS)
    return placet.read_letor(rows, relations={name: files(name, text) for name, text in relations.items()})


def test_similarity_by_names_is_made_symmetric(files):
    data = read(files, similarity="7 A B 0.5\n7 B A 0.25\n7 A C 0.1\n9 B D 0.75\n9 B X 1\n8 A B 1\n7 A A 1\n")
    S = data.relations["similarity"].toarray()
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[0, 2] = expected[2, 0] = 0.1
    expected[3, 4] = expected[4, 3] = 0.75
    np.testing.assert_array_equal(S, expected)
    assert "similarity: 4 entries join documents of one query (7 lines)" in data.notes


def test_similarity_by_numbers(files):
    data = read(files, similarity="qid:7 qdid:1 2:0.5 3:0.25\nqid:9 qdid:2 1:0.125\nqid:8 qdid:1 2:1\n")
    S = data.relations["similarity"].toarray()
    assert (S[0, 1], S[2, 0], S[3, 4], S[4, 3], np.count_nonzero(S)) == (0.5, 0.25, 0.125, 0.125, 6)


def test_links_and_sitemaps_have_a_direction_and_hold_in_every_query(files):
    data = read(files, links="A B\nB A\nB D\nA D\nX B\nA B\nA A\n", sitemap="B 2 30 0 A\nA 1 10 2 -1\nD 3 9 0 B\nD B\n")
    links, tree = data.relations["links"].toarray(), data.relations["sitemap"].toarray()
    assert np.argwhere(links).tolist() == [[0, 1], [1, 0], [3, 4]]
    assert np.argwhere(tree).tolist() == [[0, 1], [3, 4]]
    assert set(np.unique(links)) == {0.0, 1.0}


def test_rows_that_lie_apart_keep_their_relations(files):
    lines = ROWS.splitlines()
    apart = "\n".join([lines[3], lines[0], lines[4], lines[2], lines[1]])
    data = placet.read_letor(files("apart.txt", apart), relations={"links": files("links", "A B\nB D\n")})
    links = data.relations["links"]
    place = {name: data.row.tolist().index(k) for k, name in enumerate(("B9", "A", "D", "C", "B7"))}
    assert links[place["A"], place["B7"]] == links[place["B9"], place["D"]] == 1
    assert links.nnz == 2


def test_relations_are_kept_when_parts_are_joined_and_chosen(files):
    data = read(files, links="A B\nB D\n")
    other = placet.read_letor(files("S2.txt", ROWS.replace("qid:7", "qid:17").replace("qid:9", "qid:19")),
                              relations={"links": files("links2", "A C\n")})  # fmt: skip
    whole = placet.concat([data, other])
    assert np.argwhere(whole.relations["links"].toarray()).tolist() == [[0, 1], [3, 4], [5, 7]]
    assert whole[1:2].relations["links"].toarray().tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("relations", "words"),
    [
        ({"similarity": "7 A B x\n"}, "similarity:1.*'x' is not a finite number.*a line is: query document"),
        ({"similarity": "7 A B\n"}, "3 columns; there must be 4"),
        ({"similarity": "qid:7 1:0.5\n"}, "is not qid:query qdid:number"),
        ({"similarity": "qid:7 qdid:1 4:0.5\n"}, r"document 4 is not in 1\.\.3"),
        ({"links": "A\n"}, "1 columns; there must be 2"),
        ({"links": "X Y\n"}, "none of 1 lines joins two documents of one query"),
        ({"sitemap": "A B C\n"}, "3 columns; there must be 2 or 5"),
    ],
)
def test_wrong_files_are_named(files, relations, words):
    with pytest.raises(DataError, match=words):
        read(files, **relations)


def test_what_cannot_be_read(files):
    with pytest.raises(ValueError, match="relation 'anchors' is unknown; choose from"):
        read(files, anchors="A B\n")
    bare = files("bare.txt", ROWS.replace("#docid", "#"))
    with pytest.raises(DataError, match="the rows have no names"):
        placet.read_letor(bare, relations={"links": files("l", "A B\n")})
    twice = files("twice.txt", ROWS.replace("= B\n1 qid:7", "= A\n1 qid:7"))
    with pytest.raises(DataError, match="document 'A' occurs twice in query 7"):
        placet.read_letor(twice, relations={"links": files("l", "A B\n")})


def test_rankers_take_them(files):
    data = read(files, similarity="7 A B 0.5\n7 A C 0.1\n9 B D 0.75\n", links="A B\nB D\n")
    reranker = ListwiseReranker(LinearRanker("ranknet"), ("similarity", "links.T"), positive=True).fit(data)
    assert np.isfinite(reranker.predict(data)).all()
    assert np.isfinite(ContinuousCRF("similarity", loss="ranknet").fit(data).predict(data)).all()


def test_a_set_of_thousands_of_links(files):
    """Every pair that is in a list is found, whatever else the graph of the whole web holds."""
    n = 300
    rows = "".join(f"{k % 3} qid:{k // 30} 1:{k} #docid = d{k}\n" for k in range(n))
    rng = np.random.default_rng(0)
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, 2 * n, (20_000, 2)) if a != b}
    data = placet.read_letor(
        files("r", rows), relations={"links": files("l", "".join(f"d{a} d{b}\n" for a, b in pairs))}
    )
    expected = {(a, b) for a, b in pairs if a < n and b < n and a // 30 == b // 30}
    assert set(map(tuple, np.argwhere(data.relations["links"].toarray()).tolist())) == expected
