"""`temperance completion`: the script for shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

COMPLETE = "_TEMPERANCE_COMPLETE"  # the variable in which the shell asks

EXAMPLES = """\b
Examples:
  temperance completion bash >> ~/.bashrc
  temperance completion zsh >> ~/.zshrc
  temperance completion fish > ~/.config/fish/completions/temperance.fish
"""


@click.command(epilog=EXAMPLES, short_help="Print the script for shell completion.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and methods in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None  # every choice is a shell that click supports
    click.echo(kind(context.find_root().command, {}, "temperance", COMPLETE).source())
