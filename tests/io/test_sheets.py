"""Workbooks are read as the sheet saved as CSV would be, and a zip archive as the one table in it."""

import io
import zipfile
from xml.sax.saxutils import escape

import pytest

import placet
from placet import DataError

fastexcel = pytest.importorskip("fastexcel", reason="workbooks need the extra 'sheets'")

HEADER = ["model_a", "model_b", "winner", "round", "date"]
ROWS = [["x", "y", "x", 1, "2024-01-02"], [], ["y", "z", "tie", 2, "2024-01-03"], ["x", 7, 7, 2.5, "2024-01-04"]]
CSV = "model_a,model_b,winner,round,date\nx,y,x,1,2024-01-02\ny,z,tie,2,2024-01-03\nx,7,7,2.5,2024-01-04\n"


def xlsx(path, **sheets):
    """A workbook with inline text and numbers, as small as Excel accepts."""
    kind, main = "application/vnd.openxmlformats-officedocument.spreadsheetml", "schemas.openxmlformats.org"
    office = f"http://{main}/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        parts = "".join(
            f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{kind}.worksheet+xml"/>'
            for k in range(1, len(sheets) + 1)
        )
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="http://{main}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>{parts}</Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="http://{main}/package/2006/relationships"><Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        links = "".join(
            f'<Relationship Id="rId{k}" Type="{office}/worksheet" Target="worksheets/sheet{k}.xml"/>'
            for k in range(1, len(sheets) + 1)
        )
        file.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="http://{main}/package/2006/relationships">{links}</Relationships>',
        )
        names = "".join(f'<sheet name="{name}" sheetId="{k}" r:id="rId{k}"/>' for k, name in enumerate(sheets, 1))
        file.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="http://{main}/spreadsheetml/2006/main" xmlns:r="{office}"><sheets>{names}</sheets></workbook>',
        )
        for k, rows in enumerate(sheets.values(), 1):
            cells = [
                f'<row r="{r}">'
                + "".join(cell(value, f"{'ABCDEFGHIJ'[c]}{r}") for c, value in enumerate(row) if value is not None)
                + "</row>"
                for r, row in enumerate(rows, 1)
            ]
            file.writestr(
                f"xl/worksheets/sheet{k}.xml",
                f'<worksheet xmlns="http://{main}/spreadsheetml/2006/main"><sheetData>{"".join(cells)}</sheetData></worksheet>',
            )


def cell(value, at):
    if isinstance(value, str):
        return f'<c r="{at}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{at}"><v>{value}</v></c>'


def ods(path, **sheets):
    """An OpenDocument spreadsheet."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    kind = "application/vnd.oasis.opendocument.spreadsheet"

    def one(value):
        if value is None:
            return "<table:table-cell/>"
        said = (
            'office:value-type="string"'
            if isinstance(value, str)
            else f'office:value-type="float" office:value="{value}"'
        )
        return f"<table:table-cell {said}><text:p>{escape(str(value))}</text:p></table:table-cell>"

    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join("<table:table-row>" + ("".join(map(one, row)) or one(None)) + "</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", kind)
        file.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{space}:office:1.0" xmlns:table="{space}:table:1.0" xmlns:text="{space}:text:1.0"><office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>',
        )
        file.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{space}:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
        )


MAKERS = {"xlsx": xlsx, "ods": ods}


@pytest.fixture(params=MAKERS)
def book(request, tmp_path):
    def make(name="votes", suffix=None, **sheets):
        path = tmp_path / f"{name}.{suffix or request.param}"
        MAKERS[request.param](path, **sheets)
        return path

    return make


def test_a_sheet_is_read_as_its_csv(book):
    """Numbers in cells are names as CSV would have them, and blank rows count for nothing."""
    path = book(Votes=[HEADER, *ROWS], Empty=[])
    data = placet.read(path, control="round")
    assert data == placet.read(io.StringIO(CSV), control="round")
    assert data.notes == ("read as votes: model_a, model_b, winner, round; ignored: date",)
    assert placet.read_battles(path, time="date") == placet.read_battles(io.StringIO(CSV), time="date")
    assert placet.read(book("same", "bin", Votes=[HEADER, *ROWS]), control="round") == data  # by content, not by name


def test_the_sheet_is_chosen_by_name(book, placet_command):
    ballots = [["tea", "milk"], [1, 2], [2, 1]]
    path = book(Votes=[HEADER, *ROWS], Ballots=ballots)
    with pytest.raises(DataError, match='2 sheets have cells; say sheet="Votes" or sheet="Ballots"'):
        placet.read(path)
    assert placet.read(path, sheet="Ballots").orders() == [["tea", "milk"], ["milk", "tea"]]
    assert placet.read_ballots(path, sheet="Ballots").orders() == [["tea", "milk"], ["milk", "tea"]]
    assert len(placet.read(path, sheet="Votes").items) == 4
    with pytest.raises(DataError, match=r"there is no sheet 'votes'; the sheets are \['Votes', 'Ballots'\]"):
        placet.read(path, sheet="votes")
    assert "x\t" in placet_command("aggregate", path, "--sheet", "Votes", code=0)[0]
    assert "say --sheet Votes or --sheet Ballots" in placet_command("aggregate", path, code=2)[1]
    by = placet_command("aggregate", path, "--sheet", "Votes", "--by", "round", "--json", code=0)[0]
    assert '"2.5"' in by


def test_every_reader_takes_a_sheet(book):
    rows = {
        placet.read_ratings: [["user", "film", "stars"], ["u", "x", 5], ["u", "y", 3]],
        placet.read_scores: [["model", "t", "u"], ["x", 1, 2], ["y", 2, None]],
        placet.io.read_features: [["qid", "label", "f"], [1, 1, 0.5], [1, 0, 2]],
        placet.io.read_preferences: [["list", "better", "worse"], ["p", "x", "y"]],
        placet.io.read_clicks: [["query", "document", "position", "clicked"], ["q", "d", 1, 1], ["q", "e", 2, 0]],
    }
    path = book(Notes=[["about"]], **{read.__name__: cells for read, cells in rows.items()})
    for read, cells in rows.items():
        text = "\n".join(",".join("" if value is None else str(value) for value in row) for row in cells)
        found, same = read(path, sheet=read.__name__), read(io.StringIO(text), format="csv")
        assert repr(found) == repr(same)
        assert found.items == same.items if hasattr(same, "items") else True


def test_what_is_wrong_is_said_with_its_row(book, tmp_path):
    with pytest.raises(DataError, match=r":4: winner 'z' is neither 'x' nor 'y'|:4: winner 'z'"):
        placet.read(book(Votes=[HEADER[:3], ["x", "y", "x"], [], ["x", "y", "z"]]))
    with pytest.raises(DataError, match=":1: two columns are named 'a'; rename one"):
        placet.read(book(Votes=[["a", "a"], [1, 2]]))
    with pytest.raises(DataError, match="the workbook is empty"):
        placet.read(book(Votes=[]))
    whole = book(Votes=[HEADER, *ROWS]).read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.xlsx: the zip archive is truncated or damaged"):
        placet.read(tmp_path / "cut.xlsx")
    (tmp_path / "text.xlsx").write_text(CSV)
    with pytest.raises(DataError, match=r"not a workbook, though its name ends in \.xlsx"):
        placet.read(tmp_path / "text.xlsx")
    (tmp_path / "plain.csv").write_text(CSV)
    with pytest.raises(DataError, match="not a workbook, so it has no sheets; leave sheet= out"):
        placet.read(tmp_path / "plain.csv", sheet="Votes")
    with pytest.raises(DataError, match="workbooks are not written"):
        placet.io.write_battles(placet.read(io.StringIO(CSV)), tmp_path / "new.xlsx")
    assert not (tmp_path / "new.xlsx").exists()


def test_without_the_extra_it_is_named(book, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    with pytest.raises(
        DataError, match=r"workbooks need the package fastexcel; pip install 'placet\[sheets\]', or save"
    ):
        placet.read(book(Votes=[HEADER, *ROWS]))


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name.replace("__", "."), text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("votes__csv", CSV),
        ("votes__jsonl", '{"model_a": "x", "model_b": "y", "winner": "x"}\n'),
        ("b__ballots", "2: a > b\nb > c\n"),
        ("q__letor", "1 qid:1 1:2\n0 qid:1 1:1\n"),
    ],
)
def test_a_zip_archive_is_the_one_table_in_it(tmp_path, name, text):
    plain = tmp_path / name.replace("__", ".")
    plain.write_text(text)
    path = zipped(tmp_path / "all.zip", README__md="# About", **{name: text})
    assert repr(placet.read(path)) == repr(placet.read(plain))
    assert repr(placet.read_ballots(path) if "ballots" in name else placet.read(io.BytesIO(path.read_bytes()))) == repr(
        placet.read(plain)
    )


def test_tables_in_a_zip_archive_given_to_their_reader(tmp_path):
    path = zipped(tmp_path / "b.zip", b__csv="First choice,Second choice\nA,B\n")
    assert placet.read_ballots(path).orders() == [["A", "B"]]


def test_zip_archives_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"two\.zip: a zip archive with 2 files \(a\.csv, b\.csv\); one is read"):
        placet.read(zipped(tmp_path / "two.zip", a__csv=CSV, b__csv=CSV))
    with pytest.raises(DataError, match="a zip archive with no table"):
        placet.read(zipped(tmp_path / "none.zip", README__md="x", LICENSE="y"))
    bad = zipped(tmp_path / "bad.zip", a__csv=CSV.replace("tie", "lefft"))
    with pytest.raises(DataError, match=r"bad\.zip/a\.csv:3: winner 'lefft'"):
        placet.read(bad)
    monkeypatch.setenv("PLACET_MAX_DECOMPRESSED", "50")
    with pytest.raises(DataError, match="expands to more than 50 bytes"):
        placet.read(bad)
    monkeypatch.delenv("PLACET_MAX_DECOMPRESSED")
    data = bytearray(bad.read_bytes())
    data[45] ^= 0xFF  # a byte of the compressed text
    bad.write_bytes(data)
    with pytest.raises(DataError, match="truncated or damaged"):
        placet.read(bad)
