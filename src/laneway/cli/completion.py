"""`laneway completion bash|zsh|fish`: prints a script that completes every command, flag and choice.

Generated from the argparse parser, so it is always complete. Only for the names of sessions and jobs
does the script call `laneway` when Tab is pressed (see `complete_names`); the rest starts no Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from laneway.base.named_tables import TABLE_KEYS
from laneway.base.schema import KEYS
from laneway.cli.complete_names import COMMAND, KINDS
from laneway.cli.main import build_parser

EPILOG = """\
Put the script where your shell looks for it:

  laneway completion bash > ~/.local/share/bash-completion/completions/laneway
  laneway completion zsh  > ~/.zfunc/_laneway        with ~/.zfunc in fpath
  laneway completion fish > ~/.config/fish/completions/laneway.fish
"""

Files: TypeAlias = Literal["no", "files", "folders", "live", "ended", "threads", "jobs", "runs"]
"""What is offered for a value besides fixed words: files, or names that only `laneway` knows."""
VALUES: dict[str, Files] = {
    "DIR": "folders",
    "PATH": "files",
    "FILE": "files",
    "WHO": "live",
    "SESSION": "ended",
    "THREAD": "threads",
    "JOB": "jobs",
    "RUN": "runs",
}
"""By metavar."""
ASKED_KINDS = "|".join(KINDS)


class Flag(msgspec.Struct, frozen=True):
    """An option of a command, as far as completion needs it."""

    names: tuple[str, ...]
    summary: str
    takes: bool
    """Whether a value follows."""
    words: tuple[str, ...]
    files: Files


class CompletedCommand(msgspec.Struct, frozen=True):
    """A parser, as far as completion needs it. The root has an empty name."""

    path: tuple[str, ...]
    summary: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]
    """The possible values of its first argument."""
    files: Files


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write a completion script for your shell to standard output."
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=tuple(WRITERS), help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print(WRITERS[options.shell](list(commands(build_parser()))), end="")
    return 0


def commands(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = (), summary: str = ""
) -> Iterator[CompletedCommand]:
    """A parser and all its subparsers, the outermost first."""
    flags: list[Flag] = []
    words: tuple[str, ...] = ()
    files: list[Files] = []
    below: list[tuple[str, argparse.ArgumentParser, str]] = []
    for action in parser._actions:  # argparse offers no other way
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            below = [(name, inner, summaries.get(name, "")) for name, inner in action.choices.items()]
            words = tuple(action.choices)
        elif action.option_strings:
            flags.append(_flag(action))
        else:
            words = words or _words(action)
            files.append(_files(action))
    offered = [kind for kind in files if kind != "no"]
    yield CompletedCommand(path, summary, tuple(flags), words, offered[0] if offered else "no")
    for name, inner, inner_summary in below:
        yield from commands(inner, (*path, name), inner_summary)


def _flag(action: argparse.Action) -> Flag:
    return Flag(
        tuple(action.option_strings), action.help or "", action.nargs != 0, _words(action), _files(action)
    )


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.metavar == "KEY":
        return (*KEYS, *TABLE_KEYS)
    return tuple(str(word) for word in action.choices or ())


def _files(action: argparse.Action) -> Files:
    return VALUES.get(str(action.metavar), "no")


def quoted(text: str) -> str:
    """As one word for any of the three shells: no quote or backslash is left in it."""
    plain = text.replace("\\", "/").replace("'", "’").replace("%%", "%").replace("\n", " ")
    return f"'{plain}'"


def bash(tree: list[CompletedCommand]) -> str:
    return f"""\
# laneway completion for bash; made by `laneway completion bash`
{_table(tree)}
_laneway() {{
    local word at= before= seen= current=${{COMP_WORDS[COMP_CWORD]}} i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        if [[ $word == = ]]; then continue; fi  # bash cuts --flag=value into three
        if [[ -n $before ]]; then before=; continue; fi
        if _laneway_takes "$at $word"; then before=$word
        elif _laneway_below "$at $word"; then at="$at $word" seen=
        elif [[ $word != -* ]]; then seen=yes; fi
    done
    [[ $current == = ]] && current=
    local offered; offered=$(_laneway_offers "$at${{before:+ $before}}" "$seen")
    local IFS=$'\\n' kind=${{offered%%$'\\n'*}} words=
    [[ $offered == *$'\\n'* ]] && words=${{offered#*$'\\n'}}
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    case $kind in
        files) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$current")) ;;
        folders) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$current")) ;;
        {ASKED_KINDS}) if [[ -z $seen || -n $before ]]; then
            local -a typed=("${{COMP_WORDS[@]:1:COMP_CWORD-1}}")
            words=$("${{COMP_WORDS[0]/#\\~/$HOME}}" {COMMAND} "$kind" "$current" "${{typed[@]}}" 2>/dev/null)
            COMPREPLY+=($(compgen -W "$words" -- "$current"))
        fi ;;
    esac
}}
complete -F _laneway laneway
"""


def zsh(tree: list[CompletedCommand]) -> str:
    return f"""\
#compdef laneway
# laneway completion for zsh; made by `laneway completion zsh`
{_table(tree)}
_laneway() {{
    emulate -L zsh
    local word at= before= seen= i
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ -n $before ]]; then before=; continue; fi
        if _laneway_takes "$at $word"; then before=$word
        elif _laneway_below "$at $word"; then at="$at $word" seen=
        elif [[ $word != -* ]]; then seen=yes; fi
    done
    local -a offered; offered=("${{(@f)$(_laneway_offers "$at${{before:+ $before}}" "$seen")}}")
    (( $#offered > 1 )) && compadd -- "${{(@)offered[2,-1]}}"
    case $offered[1] in
        files) _files ;;
        folders) _files -/ ;;
        {ASKED_KINDS}) if [[ -z $seen || -n $before ]]; then
            local -a typed names
            typed=("$words[CURRENT]" "${{(@)words[2,CURRENT-1]}}")
            names=(${{(f)"$(${{~words[1]}} {COMMAND} $offered[1] "${{(@)typed}}" 2>/dev/null)"}})
            (( $#names )) && compadd -- $names
        fi ;;
    esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _laneway "$@"; else compdef _laneway laneway; fi
"""


def _table(tree: list[CompletedCommand]) -> str:
    """Three shell functions for bash and zsh: flags that take a value, subcommands, and what is offered."""
    takes, below, offers = [], [], []
    for command in tree:
        at = "".join(f" {name}" for name in command.path)
        if command.path:
            below.append(f"        {quoted(at)}) return 0 ;;")
        flags = tuple(name for flag in command.flags for name in flag.names)
        first = f'[ -n "$2" ] || {_lines(command.words)}; ' if command.words else ""
        offers.append(f"        {quoted(at)}) {_lines((command.files,))}; {first}{_lines(flags)} ;;")
        for flag in command.flags:
            if flag.takes:
                places = "|".join(quoted(f"{at} {name}") for name in flag.names)
                takes.append(f"        {places}) return 0 ;;")
                offers.append(f"        {places}) {_lines((flag.files, *flag.words))} ;;")
    return "\n".join(
        [
            _case("_laneway_takes", [*takes, "        *) return 1 ;;"]),
            _case("_laneway_below", [*below, "        *) return 1 ;;"]),
            _case("_laneway_offers", offers),
        ]
    )


def _case(name: str, arms: list[str]) -> str:
    return "\n".join([f"{name}() {{", '    case "$1" in', *arms, "    esac", "}"])


def _lines(words: tuple[str, ...]) -> str:
    return "printf '%s\\n' " + " ".join(quoted(word) for word in words)


def fish(tree: list[CompletedCommand]) -> str:
    lines = ["# laneway completion for fish; made by `laneway completion fish`", "complete -c laneway -f"]
    for command in tree:
        where = _fish_condition(command)
        below = {
            inner.path[-1]: inner.summary for inner in tree if inner.path[:-1] == command.path and inner.path
        }
        first = _fish_condition(command, first=True)
        lines += [
            f"complete -c laneway {first} -a {quoted(word)} -d {quoted(below.get(word, ''))}"
            for word in command.words
        ]
        if command.files != "no":
            lines.append(f"complete -c laneway {where} {_fish_files(command.files)}")
        lines += [f"complete -c laneway {where} {_fish_flag(flag)}" for flag in command.flags]
    return "\n".join(lines) + "\n"


def _fish_condition(command: CompletedCommand, *, first: bool = False) -> str:
    """The condition for a completion; `first`: only while the command has no argument yet."""
    if not command.path:
        return "-n __fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in command.path)
    if first:
        seen += f"; and not __fish_seen_subcommand_from {' '.join(command.words)}"
    return f"-n {quoted(seen)}"


def _fish_flag(flag: Flag) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
    value = []
    if flag.takes:
        value = ["-x", f"-a {quoted(' '.join(flag.words))}"] if flag.words else ["-r"]
        if flag.files != "no":
            value = ["-x" if flag.files in KINDS else "-r", _fish_files(flag.files)]
    return " ".join([*names, *value, f"-d {quoted(flag.summary)}"])


def _fish_files(files: Files) -> str:
    if files == "files":
        return "-F"
    if files == "folders":
        return "-a '(__fish_complete_directories)'"
    return f"-a '(laneway {COMMAND} {files} (commandline -ct) (commandline -opc)[2..] 2>/dev/null)'"


WRITERS = {"bash": bash, "zsh": zsh, "fish": fish}
