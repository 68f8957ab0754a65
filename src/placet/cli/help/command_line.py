"""The command line: other names of commands, help in our own form, and mistakes in typing answered in one line."""

import os
from typing import Any

from typer.core import TyperGroup

from placet.cli.common.own_input import CarefulCommand
from placet.cli.help.help_text import command_help, group_help

HELP = {"help_option_names": ["-h", "--help"]}
"""How every command is asked for its help."""

OTHER_NAMES = {"rank": "aggregate"}
"""Commands that may be called by another name."""

SYNONYMS = {
    "--confidence": "--level",
    "--csv": "--out",
    "--file": "--out",
    "--html": "--report",
    "--methods": "--method",
    "--output": "--out",
    "--page": "--report",
    "--random-state": "--seed",
    "--rule": "--method",
    "--verbose": "--help",
}
"""Options as people type them -> ours."""


class Command(CarefulCommand):
    """A command whose help is ours."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx.command_path))


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
        if context is not None and hasattr(context.command, "commands"):
            return f"{path} has no option {error.option_name}; options of a command stand after its name"
        return f"{path} has no option {error.option_name}; {_meant(error.option_name, params) or see}"
    if kind == "BadOptionUsage" and "requires" in error.message:
        return f"{error.option_name} needs a value; the help of the command (-h) says which"
    if kind == "MissingParameter" and error.param is not None:
        what = str(error.param.metavar or error.param.name.upper())
        name = "" if error.param.param_type_name == "argument" else f"{error.param.opts[0]} "
        stdin = " (- for standard input)" if error.param.name in ("file", "files") else ""
        return f"{path} needs {name}{what}{stdin}: {_first_words(error.param.help)}; {see}"
    return f"{path}: {error.format_message().rstrip('.')}; {see}"


def _first_words(help: str | None) -> str:
    words = (help or "").partition(";")[0].rstrip(".")
    return words[:1].lower() + words[1:]


def _meant(typed: str, params: list[Any]) -> str:
    from placet.data.errors import nearest

    known = [name for param in params for name in param.opts if name.startswith("--")]
    near = SYNONYMS.get(typed)
    found = near if near in known else nearest(typed, known)
    return f"did you mean {found}?" if found else ""
