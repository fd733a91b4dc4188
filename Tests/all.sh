#!/usr/bin/env bash
# Runs every test, in five processes at once. The tests of the modules compute; the tests of the network wait for a server in the same
# process; the tests of apps and commands run one at a time, because a process has one app; the tests of the desktop services wait for a bus;
# the end-to-end tests wait for processes. Both cores have work all the time, and no test waits for a thread that a computing test keeps.
#
# usage: all.sh LOG_FOLDER
#
# The output is printed when all have ended, and kept in LOG_FOLDER. Exits with 1 if a test failed.
set -uo pipefail
# Run without SwiftPM, which allows one test run at a time in a folder.
bundle="$(realpath .build/debug/stormyPackageTests.xctest)"
logs="$(mkdir -p "$1" && cd "$1" && pwd)"
# One run at a time uses the folder and the programs.
exec 9>"$logs/lock"
flock -n 9 || { echo "Another run of the tests uses $logs."; exit 1; }
rm -f "$logs"/*.log "$logs"/*.status "$logs/times"
# Each job has a process group, so that an interrupted run ends all of its processes.
set -m
jobs=()
trap 'for job in "${jobs[@]}"; do kill -TERM -- "-$job" 2>/dev/null; done; exit 130' INT TERM

# $1: a name; then the options of the test runner.
run() {
  local name="$1"
  shift
  "$bundle" --testing-library swift-testing "$@" </dev/null >"$logs/$name.log" 2>&1 9>&-
  echo $? >"$logs/$name.status"
}

echo "Running all tests. Follow them in $logs/*.log."
apps='APICompile|BackgroundScenes|BackgroundTasks|BackgroundTasksTesting|BackgroundTransfer|Stormy|StormyCommand'
network='CurlTransport|FaultyServer'
run modules --skip "^(EndToEnd|DesktopServices|$network|$apps)Tests" &
jobs+=($!)
run network --filter "^($network)Tests" &
jobs+=($!)
run apps --filter "^($apps)Tests" &
jobs+=($!)
run desktop --filter '^DesktopServicesTests' &
jobs+=($!)
# Each end-to-end test starts many processes. A higher width does not shorten the run, and each test takes longer.
TEST_TIMES="$logs/times" SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${PROCESSES_WIDTH:-16}" run processes --filter '^EndToEndTests' &
jobs+=($!)
wait

failed=0
for name in desktop network apps modules processes; do
  cat "$logs/$name.log"
  if [[ $(cat "$logs/$name.status" 2>/dev/null) != 0 ]]; then failed=1; fi
done
python3 "$(dirname "$0")/slowest.py" "$logs/times"
# The closing lines of the runner again, since the end is what is read.
for name in desktop network apps modules processes; do
  grep -E '✘ (Test|Suite) ' "$logs/$name.log"
  if ! grep -E 'Test run with' "$logs/$name.log"; then
    echo "The tests of $logs/$name.log did not run to their end."
    failed=1
  fi
done
exit $failed
