#!/usr/bin/env bash
# quiet.sh <what> <log> <command...>: runs a command with its output in a log file. A terminal sees one line of progress, taken
# from "[12/345]" in the output, anything else a line per quarter; a failure shows the end of the log.
set -uo pipefail
what=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
start=$SECONDS
shown=0

progress() { # done, all
  if [[ -t 1 ]]; then
    printf '\r%s: %d of %d, %d s ' "$what" "$1" "$2" $((SECONDS - start))
  elif (( $1 * 4 / $2 > shown )); then
    shown=$(( $1 * 4 / $2 ))
    echo "$what: $((shown * 25))%, $((SECONDS - start)) s"
  fi
}

"$@" 2>&1 | tee "$log" | while IFS= read -r line; do
  [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] && progress "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
done
code=${PIPESTATUS[0]}
[[ -t 1 ]] && printf '\r\e[K'
if (( code != 0 )); then
  echo "$what: failed after $((SECONDS - start)) s; the end of $log:" >&2
  tail -n 30 "$log" >&2
  exit "$code"
fi
echo "$what: done in $((SECONDS - start)) s (log: $log)"
