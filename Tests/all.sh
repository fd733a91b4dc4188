#!/usr/bin/env bash
# Runs every test, in three processes at once: the tests of the modules compute, those of the desktop services wait for a bus, and the
# end-to-end tests wait for processes. Two cores have work all the time, and no test waits for a thread that another one blocks.
#
# usage: all.sh LOG_FOLDER
#
# The output of the first two is printed when all have ended, and kept in LOG_FOLDER. Exits with 1 if a test failed.
set -uo pipefail
swift="${SWIFT:-swift}"
logs="$(mkdir -p "$1" && cd "$1" && pwd)"
rm -f "$logs"/*.log "$logs/times"
trap 'kill 0' INT TERM

# $1: a name; then the options of `swift test`.
run() {
  local name="$1"
  shift
  # One SwiftPM at a time locks its folder. These only read it.
  "$swift" test --skip-build --ignore-lock "$@" >"$logs/$name.log" 2>&1
  echo $? >"$logs/$name.status"
}

run modules --skip '^(EndToEndTests|DesktopServicesTests)' &
run desktop --filter '^DesktopServicesTests' &
# Each end-to-end test is many processes: more at once take as long in all, and each of them longer than it may.
TEST_TIMES="$logs/times" SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${PROCESSES_WIDTH:-16}" \
  "$swift" test --skip-build --ignore-lock --filter '^EndToEndTests' 2>&1 | tee "$logs/processes.log"
echo "${PIPESTATUS[0]}" >"$logs/processes.status"
wait

failed=0
for name in desktop modules processes; do
  [[ $name == processes ]] || cat "$logs/$name.log"
  if [[ $(<"$logs/$name.status") != 0 ]]; then failed=1; fi
done
python3 "$(dirname "$0")/slowest.py" "$logs/times"
# The closing lines of the runner again, since the end is what is read.
for name in desktop modules processes; do
  grep -E '✘ (Test|Suite) ' "$logs/$name.log"
  if ! grep -E 'Test run with' "$logs/$name.log"; then
    echo "The tests of $logs/$name.log did not run to their end."
    failed=1
  fi
done
exit $failed
