"""Let a shell's Tab key complete commands and choices: ``source <(memsys completion bash)``.

The printed script holds the names, so that a Tab starts no Python: print it again after adding a choice or a plug-in.
"""

import argparse
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence

from eval.commands.catalogue import commands
from eval.commands.commands import described, explains_errors, program, start
from eval.commands.help_text import Paragraphs
from eval.commands.plugins import plugin_folders
from eval.config.presets import CONF
from eval.config.run_help import choices, groups, typed

#: Bash splits the words of a line at ``=``, ``@`` and ``:`` too, and replaces the last part alone.
_BASH = r"""_memsys_choices() {
  case $1 in
@CASES@
  esac
}
_memsys() {
  local at=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]} part group head
  local breaks='^[=@:]+$'
  part=$word
  [[ $part =~ $breaks ]] && part=
  while ((at > 1)) && [[ ${COMP_WORDS[at]} =~ $breaks || ${COMP_WORDS[at - 1]} =~ $breaks ]]; do
    word=${COMP_WORDS[--at]}$word
  done
  COMPREPLY=()
  if ((at == 1)); then
    COMPREPLY=($(compgen -W @COMMANDS@ -- "$word"))
  elif [[ $word == *=* ]]; then
    group=${word%%[@=]*}
    head=${word%"${word##*[=,]}"}
    COMPREPLY=($(compgen -P "$head" -W "$(_memsys_choices "${group#+}")" -- "${word#"$head"}"))
  elif [[ ${COMP_WORDS[1]} == run ]]; then
    COMPREPLY=($(compgen -S = -W @GROUPS@ -- "$word"))
    compopt -o nospace 2>/dev/null
  fi
  COMPREPLY=("${COMPREPLY[@]#"${word%"$part"}"}")
}
complete -o default -F _memsys memsys
"""


def bash_script(names: Iterable[str], found: Mapping[str, Iterable[str]]) -> str:
    """Return the script that completes a command's name and, of ``memsys run``, groups and their choices.

    Args:
        names: of the commands.
        found: the choices of each group of ``conf/``.
    """
    cases = (f"    {shlex.quote(group)}) echo {_words(each)} ;;" for group, each in found.items())
    script = _BASH.replace("@COMMANDS@", _words(names)).replace("@GROUPS@", _words(map(typed, found)))
    return script.replace("@CASES@", "\n".join(cases))


def _words(names: Iterable[str]) -> str:
    """Quote a list for ``compgen -W``, which expands what it is given: names with special characters are left out."""
    return shlex.quote(" ".join(name for name in names if shlex.quote(name) == name))


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the script of a shell; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("completion"), description=described(__doc__), formatter_class=Paragraphs
    )
    parser.add_argument("shell", choices=["bash"], help="the shell that reads the script")
    parser.parse_args(arguments)
    folders = (CONF, *plugin_folders())
    found = {group: choices(folders, group) for group in groups(*folders)}
    sys.stdout.write(bash_script([command.name for command in commands()], found))
    return 0


if __name__ == "__main__":
    start(main)
