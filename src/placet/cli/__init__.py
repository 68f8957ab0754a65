"""The command ``placet``: data on stdout, messages on stderr, exit code 2 on bad data."""

import os
import sys
import warnings

import typer

from placet.cli import (
    aggregate,
    audit,
    compare,
    completion,
    convert,
    demo,
    describe,
    diff,
    evaluate,
    score,
    serve,
    simulate,
    track,
    train,
)
from placet.cli.common import stopping
from placet.cli.common.console_output import say
from placet.kernels import tell_when_compiling

app = typer.Typer(
    name="placet",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn votes, ballots, ratings or search results into a ranking with confidence intervals.",
)
app.command("describe")(describe.describe)
app.command("convert")(convert.convert)
app.command("aggregate")(aggregate.aggregate)
app.command("diff")(diff.diff)
app.command("audit")(audit.audit)
app.command("evaluate")(evaluate.evaluate)
app.command("train")(train.train)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.add_typer(simulate.app, name="simulate")
app.command("track")(track.track)
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("completion")(completion.completion)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        import placet

        print(placet.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command; errors in data or parameters are reported in one line, with exit code 2."""
    warnings.showwarning = _say_warning  # type: ignore[assignment]
    tell_when_compiling(_say_compiling)
    if sys.argv[1:2] == ["serve"]:  # the server has its own signal handlers and finishes what it has begun
        stopping.refuse_little_space()
        _run()
    else:
        stopping.run(_run)


def _run() -> None:
    try:
        app(prog_name="placet")
    except Exception as error:
        if os.environ.get("PLACET_DEBUG") or not isinstance(error, (ValueError, OSError, *_errors_of_engines())):
            raise
        say(f"placet: {_words(error)}")
        sys.exit(2)


def _words(error: Exception) -> str:
    """The message of an error; for errors of the operating system, the file first and no error number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def _errors_of_engines() -> tuple[type[Exception], ...]:
    """The exceptions of engines; empty if no data module was imported, since importing them takes a while."""
    engines = sys.modules.get("placet.data.engines.serial")
    return () if engines is None else (engines.EngineError,)


def _say_compiling() -> None:
    if sys.stderr.isatty():
        say("compiling (once)")


def _say_warning(message: Warning | str, *_: object) -> None:
    say(f"placet: {message}")
