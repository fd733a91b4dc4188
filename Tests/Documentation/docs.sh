#!/usr/bin/env bash
# Compiles the documentation of the public modules with the toolchain's docc. Fails if docc prints a warning. Needs a debug build.
# The result is a static site in OUTPUT-FOLDER/site.
#
# usage: docs.sh BUILD-FOLDER OUTPUT-FOLDER
set -euo pipefail
build="$1/debug" checkouts="$1/checkouts" output="$2"
root="$(cd "$(dirname "$0")/../.." && pwd)"
modules="StormyWeather BackgroundTasks BackgroundTransfer UserNotifications BackgroundScenes BackgroundCommands BackgroundTasksTesting ServerScripts FaultyServer"
# The symbol graph of a built module can be extracted only if the imported C modules are found.
mapfile -t maps < <(find "$root/Sources" "$checkouts"/*/Sources -name module.modulemap; find "$build"/*.build -maxdepth 1 -name module.modulemap)
flags=()
for map in "${maps[@]}"; do flags+=(-Xcc "-fmodule-map-file=$map"); done
rm -rf "$output"
failed=0
for module in $modules; do
  mkdir -p "$output/graphs/$module"
  swift-symbolgraph-extract -module-name "$module" -I "$build/Modules" "${flags[@]}" -target "$(uname -m)-unknown-linux-gnu" \
    -output-dir "$output/graphs/$module" -minimum-access-level public -skip-synthesized-members
  catalog="$(echo "$root"/Sources/*/"$module/$module.docc")"
  [ -d "$catalog" ] || { echo "$module has no catalogue"; failed=1; continue; }
  docc convert "$catalog" --additional-symbol-graph-dir "$output/graphs/$module" --warnings-as-errors \
    --fallback-display-name "$module" --fallback-bundle-identifier "stormy.$module" --output-path "$output/$module.doccarchive" \
    >"$output/$module.log" 2>&1 || failed=1
  # Prints each warning or error with its file and line.
  grep -hE -A3 'warning|error' "$output/$module.log" || true
done
# Merges the documentation of all modules into one static site.
archives=()
for module in $modules; do archives+=("$output/$module.doccarchive"); done
if [ "$failed" = 0 ]; then
  docc merge "${archives[@]}" --synthesized-landing-page-name Stormy --output-path "$output/site"
  # The first page links to the two parts of the documentation. Every link on this page leads to a page of the site.
  cp "$root/Tests/Documentation/landing.html" "$output/site/index.html"
  while read -r link; do
    [ -f "$output/site/$link/index.html" ] || { echo "landing.html: $link is not a page of the site"; failed=1; }
  done < <(grep -o 'href="[^"]*"' "$output/site/index.html" | cut -d'"' -f2)
fi
[ "$failed" = 0 ] && echo "documentation of $modules: no warning"
exit "$failed"
