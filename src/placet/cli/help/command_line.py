"""The command line: other names of commands, help in our own form, and mistakes in typing answered in one line."""

import os
import stat
from typing import Any

from typer.core import TyperGroup

from placet.cli.common.own_input import CarefulCommand
from placet.cli.help.help_text import command_help, group_help, value_name

HELP = {"help_option_names": ["-h", "--help"]}
"""How every command is asked for its help."""

OTHER_NAMES = {"rank": "aggregate"}
"""Commands that may be called by another name."""

SYNONYMS = {
    "--confidence": "--level",
    "--html": "--report",
    "--methods": "--method",
    "--output": "--out",
    "--page": "--report",
    "--random-state": "--seed",
    "--rule": "--method",
}
"""Options as people type them, which are taken for ours where the command has no such option itself."""

HINTS = {
    "--csv": "write a file with --out ranking.csv",
    "--file": "files stand without an option; --out names the file to write",
    "--verbose": "notes are shown unless you say -q",
    "-v": "notes are shown unless you say -q; -V is the version",
}
"""What to do instead of options that people type and that mean nothing here."""


class Command(CarefulCommand):
    """A command whose help is ours."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx.command_path))

    def make_parser(self, ctx: Any) -> Any:
        """The parser, which takes the other names of options, too."""
        parser: Any = super().make_parser(ctx)
        options = {name: param for param in self.params for name in param.opts}
        for other, name in SYNONYMS.items():
            if name in options and other not in options:
                parser.add_option(options[name], [other], dest=options[name].name)
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; a mistake knows the command in which it was made."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            if type(error).__name__ == "MissingParameter" and self.name == "train":
                _refuse_votes(ctx.params)
            raise


def _refuse_votes(given: dict[str, Any]) -> None:
    """Raise a ``DataError`` if the file to train on holds votes or the like: what else is missing does not matter."""
    if given.get("file") is None or any(given.get(name) for name in ("order", "text", "labels", "judged", "relation")):
        return
    from placet.cli.common.feature_rows import refuse_votes

    refuse_votes(given["file"])


class Commands(TyperGroup):
    """The group of all commands, shown in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(group_help(self, ctx.command_path))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; ``help NAME`` asks for its help, and what is no command is answered in words."""
        if args[0] == "help":
            if not args[1:]:
                raise ShowHelp(self.get_help(ctx))
            args = [args[1], "--help"]
        name = OTHER_NAMES.get(args[0], args[0])
        command = self.get_command(ctx, name)
        if command is None:
            raise ValueError(self._unknown(ctx.command_path, name))
        return name, command, args[1:]

    def _unknown(self, path: str, name: str) -> str:
        if name.startswith("-"):
            return f"option {name} stands before the command; write {path} COMMAND ... {name}"
        if os.path.exists(name) and path == "placet":
            return f"{name} is a file; to rank what is in it: placet aggregate {name}"
        from placet.data.errors import nearest  # numpy comes with it

        near = nearest(name, [*self.commands, *OTHER_NAMES])
        meant = f"did you mean {path} {near}?" if near else f"{path} --help lists them all"
        return f"there is no command {name!r}; {meant}"


class ShowHelp(Exception):
    """Ends the command with its help on standard output."""


def usage_mistake(error: Any) -> str:
    """One line about a mistake in typing: what was typed, what may be meant, and where all options are listed."""
    context = error.ctx
    path = "placet" if context is None else context.command_path
    params = [] if context is None else context.command.params
    see = f"{path} --help lists all options"
    kind = type(error).__name__
    if kind == "NoSuchOption":
        if error.option_name in HINTS:
            return f"{path} has no option {error.option_name}; {HINTS[error.option_name]}"
        if context is not None and hasattr(context.command, "commands"):
            return f"{path} has no option {error.option_name}; options of a command stand after its name"
        return f"{path} has no option {error.option_name}; {_meant(error.option_name, params) or see}"
    param = getattr(error, "param", None)
    if kind == "BadOptionUsage" and "requires" in error.message:
        typed = SYNONYMS.get(error.option_name, error.option_name)
        param = next((one for one in params if typed in one.opts), None)
    if param is not None and kind in ("BadOptionUsage", "MissingParameter"):
        return f"{path} needs {_needed(param, path)}; {see}"
    return f"{path}: {error.format_message().rstrip('.')}; {see}"


def _needed(param: Any, path: str) -> str:
    """An option or argument that was left out: its name, its value, and what it is."""
    name = "" if param.param_type_name == "argument" else f"{param.opts[0]} "
    stdin = " (- for standard input)" if param.name in ("file", "files") else ""
    if stdin and not os.isatty(0) and stat.S_ISFIFO(os.fstat(0).st_mode):
        return f"{value_name(param)}; to read what is piped in: {path} -"
    return f"{name}{value_name(param)}{stdin}: {_first_words(param.help)}"


def _first_words(help: str | None) -> str:
    words = (help or "").partition(";")[0].rstrip(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def _meant(typed: str, params: list[Any]) -> str:
    from placet.data.errors import nearest

    known = [name for param in params for name in param.opts if name.startswith("--")]
    found = nearest(typed, known)
    return f"did you mean {found}?" if found else ""
