#!/usr/bin/env python3
"""Makes a Debian package or a tarball from the files that `make install` installed in a folder.

    package.py deb STAGE OUT        a Debian package, and a bill of materials (CycloneDX) in the same folder
    package.py tarball STAGE OUT    a tar.xz of a folder that works at any place
    package.py version              prints the version

STAGE contains usr/bin and the other installed folders. Two calls with the same STAGE give equal files, because all times are the commit's.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SUMMARY = "checks for storms at noon and uploads your photos of them"
DESCRIPTION = """Stormy checks the forecast of your places every day at noon and shows a
desktop notification if a storm is expected. Stormy uploads your photos of the
storm, also after a lost network, a closed terminal or a restart. Stormy
removes the location from each uploaded photo.
.
To start the daily check, run: stormy schedule"""


def output(*command: str, cwd: str = ROOT) -> str:
    return subprocess.check_output(command, cwd=cwd, text=True).strip()


def version() -> str:
    """Returns the version from the last tag vX.Y.Z, or from `Package.swift` without a tag. The number of later commits is appended."""
    with open(os.path.join(ROOT, "Package.swift")) as file:
        base = re.search(r'^let released = "([^"]+)"', file.read(), re.M)[1]
    try:
        tags = subprocess.run(
            ["git", "describe", "--tags", "--match", "v[0-9]*"], cwd=ROOT, text=True, capture_output=True).stdout.strip()
        if tags:
            tag, _, rest = tags[1:].partition("-")
            return tag + ("+" + rest.replace("-", ".") if rest else "")
        return f"{base}+{output('git', 'rev-list', '--count', 'HEAD')}.g{output('git', 'rev-parse', '--short=9', 'HEAD')}"
    except (OSError, subprocess.CalledProcessError):
        # The source has no history, or git does not show the history to this user (`sudo make install`).
        return base


def programs(stage: str) -> list[str]:
    found = []
    for folder in ("bin", "libexec"):
        path = os.path.join(stage, "usr", folder)
        found += [os.path.join(path, name) for name in sorted(os.listdir(path))]
    return found


def refuse_writable_constants(stage: str) -> None:
    """Fails if a section of constants in a program is writable."""
    for program in programs(stage):
        for line in output("readelf", "-SW", program).splitlines():
            section = re.match(r"\s*\[\s*\d+\] (\.rodata\S*) +\S+ +\S+ +\S+ +\S+ +\S+ +(\w*)", line)
            if section and "W" in section[2]:
                sys.exit(f"package.py: {section[1]} of {program} can be written")


def dependencies(stage: str) -> str:
    """Returns the packages of the linked libraries. Debian's own tool computes them."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "debian"))
        with open(os.path.join(folder, "debian/control"), "w") as file:
            file.write("Source: stormy\n\nPackage: stormy\nArchitecture: any\n")
        text = output("dpkg-shlibdeps", "-O", *["-e" + program for program in programs(stage)], cwd=folder)
    return re.search(r"shlibs:Depends=(.*)", text)[1]


def compress(path: str) -> None:
    with open(path, "rb") as file:
        content = file.read()
    with open(path + ".gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(content)
    os.remove(path)


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o644)


def maintainer() -> str:
    return output("git", "log", "-1", "--format=%an <%ae>")


def add_debian_files(stage: str) -> None:
    share = os.path.join(stage, "usr/share")
    os.makedirs(os.path.join(share, "zsh/vendor-completions"))
    for name in os.listdir(os.path.join(share, "zsh/site-functions")):
        shutil.move(os.path.join(share, "zsh/site-functions", name), os.path.join(share, "zsh/vendor-completions", name))
    os.rmdir(os.path.join(share, "zsh/site-functions"))
    for name in os.listdir(os.path.join(share, "man/man1")):
        compress(os.path.join(share, "man/man1", name))
    notice = "Files: *\nCopyright: 2025-2026 Stormy's authors\nLicense: Apache-2.0\n See /usr/share/common-licenses/Apache-2.0.\n"
    # The region table is part of the program, and the licence of the table (CC BY 4.0) requires a notice of the source.
    notice += (
        "Comment: The warning regions of Europe in /usr/bin/stormy are data of EUMETNET (MeteoAlarm), licence CC BY 4.0\n"
        " <https://creativecommons.org/licenses/by/4.0/>. The outlines were simplified to about 400 m.\n")
    write(
        os.path.join(share, "doc/stormy/copyright"),
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: stormy\n\n" + notice)
    date = output("git", "log", "-1", "--format=%cd", "--date=rfc2822")
    changes = f"stormy ({version()}) unstable; urgency=medium\n\n  * {output('git', 'log', '-1', '--format=%s')}\n\n -- {maintainer()}  {date}\n"
    changelog = os.path.join(share, "doc/stormy/changelog")
    write(changelog, changes)
    compress(changelog)


def control(stage: str) -> str:
    size = sum(
        -(-os.lstat(os.path.join(folder, name)).st_size // 1024) for folder, _, names in os.walk(stage) for name in names)
    description = DESCRIPTION.replace("\n", "\n ")
    return (
        f"Package: stormy\nVersion: {version()}\nArchitecture: {output('dpkg', '--print-architecture')}\n"
        f"Maintainer: {maintainer()}\nInstalled-Size: {size}\nDepends: {dependencies(stage)}\n"
        "Recommends: xdg-desktop-portal, notification-daemon, libcairo2\nSection: utils\nPriority: optional\n"
        f"Description: {SUMMARY}\n {description}\n")


def removal(stage: str) -> str:
    """Returns the `prerm` script. It ends all running processes of the removed programs, of all users. The users' data is kept."""
    paths = "|".join("/" + os.path.relpath(program, stage) for program in programs(stage))
    return f"""#!/bin/sh
set -e
[ "$1" = remove ] || exit 0
for exe in /proc/[0-9]*/exe; do
    case "$(readlink "$exe" || true)" in
    {paths})
        pid="${{exe#/proc/}}"
        kill "${{pid%/exe}}" 2>/dev/null || true ;;
    esac
done
"""


def deb(stage: str, out: str) -> None:
    add_debian_files(stage)
    write(os.path.join(stage, "DEBIAN/control"), control(stage))
    write(os.path.join(stage, "DEBIAN/prerm"), removal(stage))
    os.chmod(os.path.join(stage, "DEBIAN/prerm"), 0o755)
    sums = []
    for folder, _, names in os.walk(os.path.join(stage, "usr")):
        for name in names:
            path = os.path.join(folder, name)
            sums.append(f"{output('md5sum', path).split()[0]}  {os.path.relpath(path, stage)}\n")
    write(os.path.join(stage, "DEBIAN/md5sums"), "".join(sorted(sums, key=lambda line: line[34:])))
    subprocess.run(["chmod", "-R", "u+rwX,go+rX,go-w", stage], check=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", stage, out], check=True)
    with open(out.removesuffix(".deb") + ".cdx.json", "w") as file:
        json.dump(bill(stage), file, indent=1)
    print(f"{out}: {os.path.getsize(out) / 1e6:.1f} MB, installed {sum(map(os.path.getsize, programs(stage))) / 1e6:.1f} MB")


def bill(stage: str) -> dict:
    """Returns the bill of materials (CycloneDX 1.5): the packages that are compiled in and the packages that are linked."""
    with open(os.path.join(ROOT, "Package.resolved")) as file:
        pins = json.load(file)["pins"]
    components = [
        {
            "type": "library", "name": pin["identity"], "version": pin["state"].get("version", ""),
            "purl": f"pkg:swift/{pin['location'].split('://')[1].removesuffix('.git')}@{pin['state'].get('version', '')}",
        }
        for pin in pins
    ]
    compiler = re.search(r"Swift version (\S+)", output("swift", "--version"))[1]
    components.append({"type": "framework", "name": "swift-runtime", "version": compiler})
    for dependency in dependencies(stage).split(", "):
        name = dependency.split()[0]
        found = output("dpkg-query", "-W", "-f", "${Version}", name)
        components.append({"type": "library", "name": name, "version": found, "purl": f"pkg:deb/debian/{name}@{found}"})
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "stormy", "version": version()}},
        "components": components,
    }


def tarball(stage: str, out: str) -> None:
    name = f"stormy-{version()}"
    time = os.environ["SOURCE_DATE_EPOCH"]
    subprocess.run(
        ["tar", "--sort=name", f"--mtime=@{time}", "--owner=0", "--group=0", "--numeric-owner", f"--transform=s,^./usr,{name},",
         "-C", stage, "-cJf", out, "./usr"], check=True)
    print(f"{out}: {os.path.getsize(out) / 1e6:.1f} MB")


def main() -> None:
    if sys.argv[1:] == ["version"]:
        return print(version())
    kind, stage, out = sys.argv[1:]
    os.environ.setdefault("SOURCE_DATE_EPOCH", output("git", "log", "-1", "--format=%ct"))
    folder = os.path.dirname(os.path.abspath(out))
    os.makedirs(folder, exist_ok=True)
    refuse_writable_constants(os.path.abspath(stage))
    {"deb": deb, "tarball": tarball}[kind](os.path.abspath(stage), os.path.abspath(out))


main()
