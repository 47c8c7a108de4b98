"""nginx on a loopback port with its own configuration in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

CONFIG = """
{user}
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  types {{ text/html html; text/plain txt; }}
  default_type text/html;
  charset utf-8;
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  keepalive_timeout 60s;
  client_body_temp_path {root}/a; proxy_temp_path {root}/b; fastcgi_temp_path {root}/c;
  uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {site}; index index.html; }}
}}
"""


def find_nginx() -> str:
    """The program; installed with apt when this is root on such a system."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found:
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "nginx-light"], check=False)
        found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if found:
            return found
    raise SystemExit("nginx is missing, and this benchmark serves its pages with it: install it (apt install nginx).")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Nginx:
    """Serves a folder while the block runs."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._root = Path(tempfile.mkdtemp(prefix="bowerbird-nginx-"))

    def __enter__(self) -> Nginx:
        user = "user root;" if os.geteuid() == 0 else ""
        config = self._root / "nginx.conf"
        config.write_text(CONFIG.format(user=user, root=self._root, site=self.site, port=self.port))
        command = [find_nginx(), "-c", str(config), "-p", str(self._root), "-g", "daemon off;"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + 10
        while time.monotonic() < give_up:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        self.__exit__(None, None, None)
        raise SystemExit(f"nginx did not answer on port {self.port}.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._root, ignore_errors=True)
