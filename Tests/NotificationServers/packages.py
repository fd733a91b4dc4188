"""Installs Debian packages for the duration of a test, and removes the packages that were not installed before."""
import os
import pathlib
import subprocess

LIST = pathlib.Path(__file__).resolve().parents[2] / ".build/notification-servers/installed.txt"


def installed():
    """Returns the names of all installed packages."""
    lines = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n"], capture_output=True, text=True, check=True).stdout
    return {line.split()[1] for line in lines.splitlines() if line.startswith("ii")}


def version(name):
    """Returns the upstream version of a package, without Debian's epoch and revision."""
    text = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=True).stdout
    return text.split(":")[-1].split("-")[0]


def apt(*words):
    command = [] if os.getuid() == 0 else ["sudo"]
    return subprocess.run([*command, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-qq", *words], capture_output=True, text=True)


def can_install(names):
    """Returns whether the packages are installed or can be downloaded."""
    missing = [name for name in names if name not in installed()]
    if not missing:
        return True
    apt("update")
    return apt("install", "--no-install-recommends", "--download-only", *missing).returncode == 0


def install(names):
    """Installs missing packages. Lists all newly installed packages in a file, so that they can be removed after this process was killed."""
    before = installed()
    missing = [name for name in names if name not in before]
    if not missing:
        return
    print(f"Installing with apt-get: {' '.join(missing)}", flush=True)
    done = apt("install", "--no-install-recommends", *missing)
    if done.returncode:
        # Repairs an interrupted installation, updates the package lists, and tries again.
        apt("--fix-broken", "install")
        apt("update")
        done = apt("install", "--no-install-recommends", *missing)
    LIST.parent.mkdir(parents=True, exist_ok=True)
    with open(LIST, "a") as file:
        file.writelines(f"{name}\n" for name in sorted(installed() - before))
    if done.returncode:
        raise RuntimeError(f"cannot be installed: {done.stderr[-500:]}")


def remove():
    """Removes all packages that `install` has installed."""
    if not LIST.exists():
        return
    # Plasma depends on sudo. If root has no password, the removal of sudo fails, and would stop the removal of all other
    # packages.
    names = sorted(set(LIST.read_text().split()) & installed() - {"sudo"})
    if names:
        print(f"Removing {len(names)} packages that were not here before", flush=True)
        done = apt("purge", *names)
        if done.returncode:
            print(f"They are still here, and listed in {LIST}: {done.stderr[-300:]}", flush=True)
            return
    LIST.unlink()
