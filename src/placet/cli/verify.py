"""``placet verify``: compute the result of a certificate, or a trained model, anew, and say what differs."""

from pathlib import Path
from typing import Annotated

import typer

from placet.cli.common.certificate_files import check_signature, read_certified
from placet.cli.common.console_output import progress_bar, say
from placet.cli.learning.retrain import verify_model


def verify(
    paper: Annotated[
        Path,
        typer.Argument(
            metavar="CERTIFICATE",
            help="The JSON of placet aggregate --certificate, its page, or a model of placet train.",
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="The files it is about, in the same order.")],
    signature: Annotated[Path | None, typer.Option(metavar="FILE", help="The signature of the certificate.")] = None,
    signers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may sign: lines of a name and a public SSH key.")
    ] = None,
    identity: Annotated[
        str, typer.Option(metavar="NAME", help="Who must have signed; any of --signers if not given.")
    ] = "",
    valid: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of a model: the validation rows it was trained with.")
    ] = None,
    qid: Annotated[str, typer.Option(metavar="COLUMN", help="Of a model trained on a table: the queries.")] = "",
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Of a model trained on a table: the grades.")] = "",
) -> None:
    """Check a certificate: rank the files again as it says, and compare; or a model: train it again on its rows.

    Exit code 0: the same; 1: it differs, and in what; 2: it cannot be told, as with other files.  With the same
    versions and processor numbers must be equal to the last digit, else to a millionth of the largest.
    """
    from placet.aggregate import verify as compare
    from placet.aggregate.proof.certificate import read_certificate
    from placet.aggregate.proof.verification import platform_words
    from placet.rank.saving.model_files import is_saved

    if (signature is None) != (signers is None):
        raise ValueError("--signature and --signers belong together: what was signed, and who may sign")
    if is_saved(paper):
        _end(verify_model(paper, files, valid, {name: one for name, one in (("qid", qid), ("label", label)) if one}))
        return
    odd = next((name for name, one in (("--valid", valid), ("--qid", qid), ("--label", label)) if one), None)
    if odd is not None:
        raise ValueError(f"{odd} is for a model; {paper} is a certificate, which says itself how its files are read")
    found = read_certificate(paper)
    if signature is not None and signers is not None:
        say(f"signed by {check_signature(paper, signature, signers, identity)}")
    with progress_bar("reading"):
        data = read_certified(found, files)
    with progress_bar("computing"):
        differences = compare(found, data)
    say(platform_words(found))
    _end(differences)
    items = len(found["answer"]["columns"].get("item", ()))
    say(f"the same: {found['answer']['method']} ranks {items} items as {paper.name} says")


def _end(differences: list[str]) -> None:
    """Print what differs; then the exit code is 1."""
    for words in differences:
        print(words)
    if differences:
        raise typer.Exit(1)
