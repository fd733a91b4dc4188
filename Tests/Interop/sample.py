"""Runs each of the three interop scripts with one real server, chosen by a seed. CI runs this sample because all servers take too long.

    python3 Tests/Interop/sample.py SEED
"""
import pathlib
import random
import subprocess
import sys

import support
import upload_servers

dice = random.Random(int(sys.argv[1]))
chosen = [
    ("downloads.py", dice.choice(support.DOWNLOAD_SERVERS)), ("uploads.py", dice.choice(sorted(upload_servers.SERVERS))),
    ("resent.py", dice.choice(support.RESENT_SERVERS))]
print("chosen: " + ", ".join(f"{script} {server}" for script, server in chosen), flush=True)
here = pathlib.Path(__file__).parent
sys.exit(max(subprocess.run([sys.executable, here / script, server]).returncode for script, server in chosen))
