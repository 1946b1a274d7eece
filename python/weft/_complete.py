"""Completion of the command `weft` in shells, from its own parser: `eval "$(weft completion bash)"`."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "fish")


def commands_of(parser: argparse.ArgumentParser) -> dict[str, tuple[str, list[str], list[str]]]:
    """Of each command what it does, its options, and the words that it takes."""
    out = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            helps = {a.dest: a.help or "" for a in action._choices_actions}  # noqa: SLF001
            for name, command in action.choices.items():
                own: list[Any] = list(command._actions)  # noqa: SLF001
                options = [o for a in own for o in a.option_strings if o.startswith("--")]
                words = [str(w) for a in own if not a.option_strings for w in (a.choices or ())]
                out[name] = (helps.get(name, ""), options, words)
    return out


def script_for(shell: str, parser: argparse.ArgumentParser) -> str:
    """What the shell is to evaluate."""
    commands = commands_of(parser)
    files = {name for name, (_, _, words) in commands.items() if not words}
    if shell == "fish":
        lines = ["complete -c weft -f"]
        for name, (text, options, words) in commands.items():
            quoted = text.replace("'", "\\'")
            lines.append(f"complete -c weft -n __fish_use_subcommand -a {name} -d '{quoted}'")
            lines += [f"complete -c weft -n '__fish_seen_subcommand_from {name}' -l {o[2:]}" for o in options]
            lines += [f"complete -c weft -n '__fish_seen_subcommand_from {name}' -a {w}" for w in words]
            if name in files:
                lines.append(f"complete -c weft -n '__fish_seen_subcommand_from {name}' -F")
        return "\n".join(lines) + "\n"
    cases = "\n".join(f"    {name}) words='{' '.join([*options, *words])}' ;;"
                      for name, (_, options, words) in commands.items())
    function = f"""_weft() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=''
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '{' '.join(commands)}' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ $current == -* || ${{COMP_WORDS[1]}} =~ ^({'|'.join(sorted(set(commands) - files))})$ ]] ||
    COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _weft weft
"""
    return function if shell == "bash" else "autoload -U +X bashcompinit && bashcompinit\n" + function
