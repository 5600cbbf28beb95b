# SPDX-License-Identifier: MIT
# Completion of subfed's subcommands, options and files for bash; what there is, its help says.
_subfed() {
  local current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$(subfed --help | awk '/^Subcommands:/ {on = 1; next}
      on && NF {print $1}')" -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(subfed "${COMP_WORDS[1]}" --help |
      grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$current")
  fi
}
complete -o default -F _subfed subfed
