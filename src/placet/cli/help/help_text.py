"""The text of ``--help``: usage, what the command does, its options in groups, and examples to paste."""

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from typer.models import OptionInfo

WIDEST, LEFT = 100, 26
"""The widest line of a text, and the cells of an option and its value beside its description."""

OPTIONS = "Options"
NOT_SHOWN = ("install_completion", "show_completion")
"""Options of Typer for what `placet completion` does."""

VALUES = {Path: "FILE", int: "N", float: "NUMBER"}
"""What stands for the value of an option that does not say so itself, by the kind of the value."""

LAST = ("Output", "Large files", "Columns and reading")
"""Groups of options that stand after all others."""


def command_help(command: Any, path: str) -> str:
    """The help of a command: ``path`` is what is typed to call it, such as ``placet aggregate``."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and not param.hidden]
    needed = [f"{max(one.opts[:2], key=len)} {value_name(one)}" for one in options if one.required]
    usage = " ".join(["Usage:", path, *(_argument(one) for one in arguments), *needed, "[OPTIONS]"])
    blocks = [*_paragraphs(command.help or "", width), usage]
    if arguments:
        blocks.append(_table("", [(value_name(one), one.help or "") for one in arguments], width))
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in options:
        groups.setdefault(_group(option), []).append((_names(option), _description(option)))
    for name in [name for name, rows in groups.items() if len(rows) == 1 and name != OPTIONS]:
        groups.setdefault(OPTIONS, []).extend(groups.pop(name))
    order = sorted(groups, key=lambda name: LAST.index(name) if name in LAST else -1)
    blocks.extend(_table(name, groups[name], width) for name in order)
    if command.epilog:
        blocks.append(_examples(command.epilog, width))
    return "\n\n".join(blocks) + "\n"


def group_help(group: Any, path: str) -> str:
    """The help of a group of commands, in the panels that they name, which stand as their first commands do."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    options = [(_names(one), one.help or "") for one in group.params if not one.hidden and one.name not in NOT_SHOWN]
    blocks = [*_paragraphs(group.help or "", width), f"Usage: {path} COMMAND [OPTIONS]"]
    panels: dict[str, list[tuple[str, str]]] = {}
    for name, command in group.commands.items():
        title = str(getattr(command, "rich_help_panel", None) or "Commands")
        panels.setdefault(title, []).append((name, _first_sentence(command.help or "")))
    blocks.extend(_table(title, panels[title], width) for title in panels)
    if options:
        blocks.append(_table(OPTIONS, options, width))
    blocks.append(
        _examples(group.epilog, width) if group.epilog else f"{path} COMMAND --help says more about a command."
    )
    return "\n\n".join(blocks) + "\n"


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """The paragraphs of a docstring, each filled to the width."""
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False)


def _first_sentence(text: str) -> str:
    first = " ".join(text.strip().split("\n\n")[0].split())
    return first.partition(". ")[0].partition("; ")[0].rstrip(".")


def _table(title: str, rows: Sequence[tuple[str, str]], width: int) -> str:
    """Names on the left, descriptions filled on the right; a long name has a line of its own."""
    lines = [f"{title}:"] if title else []
    left = min(max(len(name) for name, _ in rows) + 2, LEFT)
    for name, text in rows:
        filled = textwrap.wrap(" ".join(text.split()), max(width - left - 2, 20), break_on_hyphens=False) or [""]
        if len(name) > left - 2:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{left}}{filled.pop(0)}".rstrip())
        lines.extend(f"  {'':<{left}}{line}".rstrip() for line in filled)
    return "\n".join(lines)


def _examples(text: str, width: int) -> str:
    lines = (line.strip() for line in text.strip().splitlines())
    return "\n".join(["Examples:", *(f"  {line}" for one in lines for line in _example(one, width - 2))])


def _example(line: str, width: int) -> list[str]:
    """A command to paste, in lines that fit: its comment stands above if there is no room beside it."""
    if len(line) <= width:
        return [line]
    command, _, comment = line.partition("  # ")
    words = [part.strip() for part in re.split(r" (?=-)", command)]
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 <= width:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"  {word}")
    return [f"# {comment}", *lines] if comment else lines


def _argument(param: Any) -> str:
    name = value_name(param) + ("..." if param.nargs != 1 else "")
    return name if param.required else f"[{name}]"


def _group(option: Any) -> str:
    return str(getattr(option, "rich_help_panel", None) or OPTIONS)


def _names(option: Any) -> str:
    """The names of an option, short before long, and of its value."""
    names = ", ".join(sorted([*option.opts, *option.secondary_opts], key=lambda name: name.startswith("--")))
    return names if option.is_flag else f"{names} {value_name(option)}"


def value_name(param: Any) -> str:
    """What stands for the value of an option or argument."""
    return str(param.metavar or param.name.upper().replace("_", "-"))


def name_values(command: Callable[..., Any]) -> None:
    """Let every option of a command that does not name its value be shown with the kind of it."""
    for param in inspect.signature(command).parameters.values():
        hint, *about = get_args(param.annotation) if get_origin(param.annotation) is Annotated else (None,)
        kinds = [one for one in (hint, *get_args(hint)) if one is not None]
        for option in about:
            if isinstance(option, OptionInfo) and option.metavar is None and bool not in kinds:
                option.metavar = next((VALUES[kind] for kind in kinds if kind in VALUES), None)


def _description(option: Any) -> str:
    default = option.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default not in ("", 0)
    more = " (needed)" if option.required else f" [{default}]" if shown and not option.is_flag else ""
    return (option.help or "") + more
