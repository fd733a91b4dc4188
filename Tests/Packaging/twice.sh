#!/usr/bin/env bash
# Builds the package of this commit twice, in two new folders with different names. Then compares the two packages byte for byte.
#
# usage: twice.sh CHECKOUT
set -euo pipefail
checkout="$(cd "$1" && pwd)"
# Both builds use this commit, even if HEAD changes while the script is running.
commit="$(git -C "$checkout" rev-parse HEAD)"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
for folder in one another; do
  git clone -q "$checkout" "$place/$folder"
  git -C "$place/$folder" checkout -q "$commit"
  # Both builds use the same versions of the dependencies.
  cp "$checkout/Package.resolved" "$place/$folder/"
  make -C "$place/$folder" deb >"$place/$folder.log" 2>&1 || { tail -n 30 "$place/$folder.log"; exit 1; }
done
if ! cmp "$place/one/.build/packages/stormy.deb" "$place/another/.build/packages/stormy.deb"; then
  for folder in one another; do dpkg-deb -R "$place/$folder/.build/packages/stormy.deb" "$place/$folder.unpacked"; done
  diff -rq "$place/one.unpacked" "$place/another.unpacked" || true
  exit 1
fi
cmp "$place/one/.build/packages/stormy.cdx.json" "$place/another/.build/packages/stormy.cdx.json"
sha256sum "$place/one/.build/packages/stormy.deb" | cut -d' ' -f1
echo "Two builds of the package in two folders are equal."
