"""``placet completion``: shell completion of commands, options, and names of methods and formats."""

from typing import Annotated, Literal

import typer


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="Your shell: bash, zsh or fish.")
    ],
) -> None:
    """Print the completion script of a shell; placet --install-completion installs it.

    For bash:  placet completion bash >> ~/.bashrc
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="placet", complete_var="_PLACET_COMPLETE", shell=shell))
