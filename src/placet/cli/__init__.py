"""The command ``placet``: data on stdout, messages on stderr, exit code 2 on bad data."""

import os
import shlex
import sys
import warnings

import typer

from placet.cli import (
    aggregate,
    audit,
    completion,
    convert,
    demo,
    describe,
    diff,
    enough,
    fragility,
    methods,
    next,
    plan,
    serve,
    simulate,
    track,
    verify,
)
from placet.cli.common import stopping
from placet.cli.common.console_output import replace_closed_streams, say
from placet.cli.common.options import can_be_quiet
from placet.cli.help.command_line import HELP, Command, Commands, ShowHelp, usage_mistake
from placet.cli.help.examples import EXAMPLES
from placet.cli.help.help_text import name_values
from placet.cli.learning import choice, compare, evaluate, score, train
from placet.kernels import tell_when_compiling

PANELS = {
    "Rank": (aggregate.aggregate, audit.audit, diff.diff, methods.methods, serve.serve),
    "Prove": (fragility.fragility, verify.verify),
    "Ask": (next.next, enough.enough, plan.plan),
    "Learn to rank": (train.train, score.score, evaluate.evaluate, compare.compare, choice.choice),
    "Data": (describe.describe, convert.convert, simulate.app),
    "Floats": (track.track,),
    "Help": (demo.demo, completion.completion),
}
"""The commands, as the help of ``placet`` groups them; the first of a group's functions is the first shown."""

app = typer.Typer(
    name="placet",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    help="Rank things from votes, ballots, ratings or search results, with confidence intervals.",
    epilog="""
        placet aggregate votes.csv --report page.html
        placet describe votes.csv
        placet aggregate --help""",
)
for _panel, _commands in PANELS.items():
    for _command in _commands:
        if isinstance(_command, typer.Typer):
            _name = "simulate"
            for _one in _command.registered_commands:
                name_values(_one.callback)  # type: ignore[arg-type]
                _one.epilog = EXAMPLES[f"{_name} {_one.name}"]
                _one.callback = can_be_quiet(_one.callback)  # type: ignore[arg-type]
            app.add_typer(
                _command,
                name=_name,
                cls=Commands,
                context_settings=HELP,
                epilog=EXAMPLES[_name],
                rich_help_panel=_panel,
            )
        else:
            _name = _command.__name__
            name_values(_command)
            _register = app.command(
                _name, cls=Command, context_settings=HELP, epilog=EXAMPLES[_name], rich_help_panel=_panel
            )
            _register(can_be_quiet(_command))


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", "-V", help="Print the version and stop.")) -> None:
    if version:
        import placet

        print(placet.__version__)
        raise typer.Exit


def main() -> None:
    """Run the command; errors in data or parameters are reported in one line, with exit code 2."""
    replace_closed_streams()
    warnings.showwarning = _say_warning  # type: ignore[assignment]
    tell_when_compiling(_say_compiling)
    if sys.argv[1:2] == ["serve"]:  # the server has its own signal handlers and finishes what it has begun
        stopping.refuse_little_space()
        _run()
    else:
        stopping.run(_run)


def _run() -> None:
    try:
        sys.exit(app(prog_name="placet", standalone_mode=False))
    except ShowHelp as text:
        print(text)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error)
            sys.exit(2)
        if hasattr(error, "format_message"):
            say(f"placet: {usage_mistake(error)}", error=True)
            sys.exit(2)
        if os.environ.get("PLACET_DEBUG") or not isinstance(error, (ValueError, OSError, *_errors_of_engines())):
            raise
        say(f"placet: {_words(error)}", error=True)
        for command in _commands_of(error):
            print(f"  {command}", file=sys.stderr)
        sys.exit(2)


def _commands_of(error: Exception) -> list[str]:
    """What was typed with the options that choose each way to read the data, if there are several."""
    ways: tuple[str, ...] = getattr(error, "ways", ())
    if not ways:
        return []
    from placet.cli.common.option_wording import in_options

    typed = shlex.join(["placet", *sys.argv[1:]])
    return [f"{typed} {in_options(way)}" for way in ways]


def _words(error: Exception) -> str:
    """The message of an error; for errors of the operating system, the file first and no error number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        name = os.fsdecode(error.filename)
        near = _near_file(name) if isinstance(error, FileNotFoundError) else None
        meant = f"; did you mean {near}?" if near else ""
        return f"{name}: {error.strerror[0].lower()}{error.strerror[1:]}{meant}"
    return str(error)


def _near_file(name: str) -> str | None:
    """The file of the same folder that a misspelled name may mean."""
    from placet.data.errors import nearest

    folder, last = os.path.split(name)
    near = nearest(last, os.listdir(folder or ".")) if os.path.isdir(folder or ".") else None
    return os.path.join(folder, near) if near else None


def _errors_of_engines() -> tuple[type[Exception], ...]:
    """The exceptions of engines; empty if no data module was imported, since importing them takes a while."""
    engines = sys.modules.get("placet.data.engines.serial")
    return () if engines is None else (engines.EngineError,)


def _say_compiling() -> None:
    if sys.stderr.isatty():
        say("compiling (once)")


def _say_warning(message: Warning | str, *_: object) -> None:
    say(f"placet: {message}", error=True)
