"""Certificates as files: written with a result, read with the files they are about, signed by ssh-keygen."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NAMESPACE = "placet"
"""What signatures are for; a signature made for something else is refused."""


def check_certificate_options(
    certificate: Path | None, sign: Path | None, files: Sequence[Path], together: Mapping[str, Any]
) -> None:
    """Raise a ``ValueError`` for options that do not go with a certificate, before anything is read."""
    if certificate is None:
        if sign is not None:
            raise ValueError(f"--sign {sign} signs a certificate; add --certificate FILE")
        return
    wrong = next((name for name, value in together.items() if value), None)
    if wrong is not None or any("=" in str(file) and not file.exists() for file in files):
        raise ValueError(f"--certificate is for one board of plain files; leave {wrong or 'NAME=FILE'} out")
    if sign is not None:
        _ssh_keygen()


def write_certificate(
    target: Path, result: Any, files: Sequence[Path], reading: Mapping[str, Any], level: float, sign: Path | None
) -> dict[str, Any]:
    """Write the certificate of a result, and its signature beside it if a key is given; gives the certificate."""
    from placet.aggregate import Consensus
    from placet.aggregate.proof.certificate import canonical
    from placet.aggregate.result.boards import is_board
    from placet.data import DataError
    from placet.io.files import writing

    if not isinstance(result, Consensus) or result.asked is None:
        raise DataError("--certificate is for one board, and the files hold several problems; leave it out")
    if any(file.suffix == ".json" and is_board(file) for file in files):
        raise ValueError("--certificate needs the files of the votes themselves, not a board to update")
    made: dict[str, Any] = result.certificate(level, files=files, reading=reading, fragility=None)
    with writing(target) as file:
        file.write(canonical(made) + b"\n")
    if sign is not None:
        _run(["-Y", "sign", "-f", str(sign), "-n", NAMESPACE, str(target)], None)
    return made


def read_certified(certificate: Mapping[str, Any], files: Sequence[Path]) -> Any:
    """The data of the files, read as the certificate says; a ``DataError`` for files that it is not about."""
    from placet.aggregate.proof.certificate import digest_of_data
    from placet.cli.common.options import check_reading, formats_to_rank
    from placet.data import DataError, Scores
    from placet.io import read_files, to_aggregate

    _check_files(certificate["files"], files)
    reading = certificate["question"]["reading"]
    format, options = reading.get("format", ""), reading.get("options", {})
    if not isinstance(format, str) or not isinstance(options, dict) or {"source", "format"} & set(options):
        raise DataError("the certificate does not say how to read the files: its entry 'reading' is not of Placet")
    check_reading(options, formats_to_rank(format), "the certificate")
    data = to_aggregate(read_files(files, format or None, **options), str(files[0]))
    if isinstance(data, Scores) and digest_of_data(data) != certificate["data"]["sha256"]:
        data = data.to_rankings()  # as methods that do not read scores take them
    return data


def _check_files(entries: Sequence[Mapping[str, Any]], files: Sequence[Path]) -> None:
    from placet.aggregate.proof.certificate import file_entry
    from placet.data import DataError

    if len(entries) != len(files):
        names = ", ".join(entry["name"] for entry in entries) or "none: it is about data in memory"
        raise DataError(f"the certificate is about {len(entries)} files ({names}), and {len(files)} were given")
    for path, entry in zip(files, entries):
        found = file_entry(path)
        if found["sha256"] != entry["sha256"] or found["bytes"] != entry["bytes"]:
            raise DataError(
                f"{path}: not the file of the certificate, {entry['name']}: {found['bytes']:,} bytes with digest "
                f"{found['sha256'][:12]}..., there {entry['bytes']:,} with {entry['sha256'][:12]}...; give that file"
            )


def check_signature(certificate: Path, signature: Path, signers: Path, identity: str) -> str:
    """Who signed the certificate, by ssh-keygen; a ``ValueError`` if the signature is not good."""
    who = identity
    if not who:
        found = _run(["-Y", "find-principals", "-f", str(signers), "-s", str(signature)], None)
        who = found.splitlines()[0].split(",")[0] if found.strip() else ""
    words = ["-Y", "verify", "-f", str(signers), "-I", who, "-n", NAMESPACE, "-s", str(signature)]
    _run(words, certificate.read_bytes())
    return who


def _ssh_keygen() -> str:
    found = shutil.which("ssh-keygen")
    if found is None:
        raise ValueError("signatures are made and checked by ssh-keygen, which is not installed (OpenSSH 8.1 or later)")
    return found


def _run(words: Sequence[str], given: bytes | None) -> str:
    done = subprocess.run([_ssh_keygen(), *words], input=given, capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise ValueError(f"ssh-keygen {words[1]}: {said[-1] if said else 'failed'}")
    return done.stdout.decode(errors="replace")
