#!/usr/bin/env bash
# Runs every test, in five processes at the same time. The tests of the modules compute. The tests of the network wait for a
# server in the same process. The tests of apps and commands run one at a time, because a process has one app. The tests of the
# desktop services wait for a bus. The end-to-end tests wait for processes. In this way both cores always have work, and no test
# waits for a thread that another test uses for computing.
#
# usage: all.sh LOG_FOLDER
#
# The output is printed when all processes have ended, and is stored in LOG_FOLDER. Exits with 1 if a test failed.
set -uo pipefail
# The tests run without SwiftPM, because SwiftPM allows only one test run at a time in a folder.
bundle="$(realpath .build/debug/stormyPackageTests.xctest)"
logs="$(mkdir -p "$1" && cd "$1" && pwd)"
# Only one run at a time may use the folder and the programs.
exec 9>"$logs/lock"
flock -n 9 || { echo "Another run of the tests uses $logs."; exit 1; }
rm -f "$logs"/*.log "$logs"/*.status "$logs/times"
# Each job has a separate process group. If the run is interrupted, all processes of the job are ended.
set -m
jobs=()
trap 'for job in "${jobs[@]}"; do kill -TERM -- "-$job" 2>/dev/null; done; exit 130' INT TERM

# $1 is the name of the job. The other arguments are options of the test runner.
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
# Each end-to-end test starts many processes. A higher number of parallel tests does not shorten the run, and each test takes
# longer.
TEST_TIMES="$logs/times" SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${PROCESSES_WIDTH:-16}" run processes --filter '^EndToEndTests' &
jobs+=($!)
wait

failed=0
for name in desktop network apps modules processes; do
  cat "$logs/$name.log"
  if [[ $(cat "$logs/$name.status" 2>/dev/null) != 0 ]]; then failed=1; fi
done
python3 "$(dirname "$0")/slowest.py" "$logs/times"
# The failures and the summary of the runner are printed again, because readers look at the end of the output.
for name in desktop network apps modules processes; do
  grep -E '✘ (Test|Suite) ' "$logs/$name.log"
  if ! grep -E 'Test run with' "$logs/$name.log"; then
    echo "The tests of $logs/$name.log did not run to their end."
    failed=1
  fi
done
exit $failed
