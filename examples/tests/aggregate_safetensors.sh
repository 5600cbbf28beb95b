#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# aggregate_safetensors.sh <folder of the programs>: the aggregator on what can go wrong around it.
set -uo pipefail

make=$1/subfed_make_checkpoints aggregate=$1/subfed_aggregate_safetensors
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
failed=0

fail() {
  printf 'FAILED: %s\n%s\n' "$1" "$(cat output)"
  failed=1
}
# says <status> <text> <command>...: the command ends so, and its output has the text.
says() {
  local status=$1 text=$2 found=0
  shift 2
  "$@" >output 2>&1 || found=$?
  [[ $found == "$status" ]] || fail "status $found, expected $status: $*"
  [[ -z $text ]] || grep -qF -- "$text" output || fail "no \"$text\" from $*"
}
run() { "$aggregate" server.safetensors updates out.safetensors; }
# changed <from> <to>: the last update with other metadata of the same length.
changed() {
  sed "s|$1|$2|" "$place/kept" >updates/client2.safetensors
}

says 0 "" "$make" .
cp updates/client2.safetensors kept
says 0 "3 updates, 6 parameters averaged, 6 held by nobody; wrote out.safetensors" run
cp out.safetensors old

changed '"capacity":"0.5"' '"capacity":"1/2"'
says 0 "3 updates, 6 parameters averaged" run
cmp -s out.safetensors old || fail "1/2 is not 0.5"
changed '"capacity":"0.5"' '"capacity":"0,5"'
says 1 'updates/client2.safetensors: The capacity "0,5" is not a number' run
changed '"capacity":"0.5"' '"Capacity":"0.5"'
says 1 'updates/client2.safetensors: The metadata lacks the capacity.' run
changed '"weight":"2"' '"weight":","'
says 1 'updates/client2.safetensors: The metadata gives the weight ","' run
changed '"weight":"2"' '"height":"2"'
says 1 'updates/client2.safetensors: The metadata lacks the weight.' run
changed '"round":"1"' '"round":"-"'
says 1 'updates/client2.safetensors: The metadata gives the round "-"' run
changed '"client":"2"' '"client":"x"'
says 1 'updates/client2.safetensors: The metadata gives the client "x"' run
changed 'fc1.bias' 'fc2.bias'
says 1 "updates/client2.safetensors: subfed: safetensors: the file has no tensor 'fc1.bias'" run
echo "not a checkpoint" >updates/client2.safetensors
says 1 "updates/client2.safetensors: subfed: safetensors: " run
cp kept updates/client2.safetensors
cmp -s out.safetensors old || fail "an error changed what was there"

says 1 "none.safetensors cannot be read: No such file or directory." \
  "$aggregate" none.safetensors updates out.safetensors
says 1 "updates cannot be read: Is a directory." "$aggregate" updates updates out.safetensors
says 1 "none" "$aggregate" server.safetensors none out.safetensors
says 1 "none/out cannot be written: No such file or directory." \
  "$aggregate" server.safetensors updates none/out
says 1 "<out.safetensors>" "$aggregate"

# No room: for the file, and for what is printed.
limited() { (trap '' XFSZ; ulimit -f 0; run) 2>&1 | cat; }
says 1 "out.safetensors cannot be written: File too large." limited
cmp -s out.safetensors old || fail "a file that could not be written has changed"
says 1 "/dev/full cannot be written: No space left on device." \
  "$aggregate" server.safetensors updates /dev/full
full() { run >/dev/full; }
says 1 "The output could not be written: No space left on device." full
closed() { run >&-; }
says 1 "The output could not be written: Bad file descriptor." closed
[[ -z $(find . -name '*.unfinished') ]] || fail "an unfinished file lies about"
full() { "$make" /dev/null/x; }
says 1 "/dev/null/x" full

# The other programs that print: one line, in the words of the system.
shift
for program in "$@"; do
  full() { "$program" >/dev/full; }
  says 1 "The output could not be written: No space left on device" full
done
exit $failed
