"""Support for the benchmarks of transfers: the built binaries in a temporary home, and an nginx."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# The measured binaries. The default is the release build of the repository. `make benchmark-day` measures an installed program.
BIN = pathlib.Path(os.environ.get("BENCHMARKED") or pathlib.Path(__file__).resolve().parents[3] / ".build/release")


def timed(command, **options):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    return time.monotonic() - began


def memory(pid, line):
    """Returns a memory value of a process in MiB. VmRSS is the present value, and VmHWM is the maximum."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(text for text in status.splitlines() if text.startswith(line)).split()[1]) / 1024


class Bench:
    """A folder with a home and an nginx that serves `www`. Everything is removed at the end, also after an error."""

    def __init__(self, http="", server="", modules=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
        (self.folder / "www").mkdir()
        (self.folder / "run").mkdir(mode=0o700)
        kept = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
        self.environment = kept | {"HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder / "run")}
        for kind in ("CONFIG", "STATE", "DATA"):
            self.environment[f"XDG_{kind}_HOME"] = str(self.folder / kind.lower())
        self.directives = http, server
        self.modules = "".join(f"load_module /usr/lib/nginx/modules/{module}.so; " for module in modules)

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        folder, (http, server) = self.folder, self.directives
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        user = "user root;" if os.getuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{self.modules}daemon off; pid {folder}/pid; error_log {folder}/error.log; {user} events {{}}\n"
            f"http {{ access_log off; {temporary} {http} server {{ listen 127.0.0.1:{port}; root {folder}/www; {server} }} }}\n")
        self.server = subprocess.Popen(
            ["nginx", "-c", str(folder / "nginx.conf")], env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.url = f"http://127.0.0.1:{port}"
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return self
            time.sleep(0.01)

    def __exit__(self, *_):
        subprocess.run([BIN / "stormy", "quit"], env=self.environment, capture_output=True)
        if (BIN / "courier-example").exists():
            subprocess.run([BIN / "courier-example", "background", "quit"], env=self.environment, capture_output=True)
        # The workers are also killed. Running workers would keep the output of this script open.
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def agent(self):
        """Returns the process of the agent, or `None` if no agent is running."""
        status = subprocess.run([BIN / "stormy", "status", "--json"], env=self.environment, capture_output=True, text=True)
        return json.loads(status.stdout)["agent"]["pid"] if status.returncode == 0 else None
