"""The embedded AWS: a ministack process in a virtual environment of its own.

Its own, because it pins a botocore that is older than the functions', and because it runs the
functions with its own interpreter. Nothing that it stores outlives it.
"""

import atexit
import os
import secrets
import shutil
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

from boto3.session import Session

from local import commands
from local.cloud import CLIENT_CONFIG
from local.paths import BUILD, LOGS
from local.serving import HOST, Serving, on_a_free_port

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"

LAST_LOG: Final = LOGS / "emulator.txt"
"""What the emulator that was stopped last had to say, the functions' output included."""

_REQUIREMENTS: Final = ("ministack==1.5.33", "boto3==1.43.106")
_KEPT_VARIABLES: Final = ("PATH", "HOME", "LANG", "SSL_CERT_FILE")
_ADVICE: Final = "Try again; if it stays, delete the folder build/ and run `make setup`."

# Reads its standard input until that ends, which it does when the parent does, however it dies;
# then takes its process group, the functions' workers included, along.
_LEASHED: Final = """
import os, signal, sys, threading

def leave_with_parent():
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=leave_with_parent, daemon=True).start()
from ministack.app import main
main()
"""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an emulator, and as whom: its root user, whom `AUTH=true` does not restrict."""

    endpoint: str
    access_key_id: str
    secret_access_key: str

    def variables(self) -> dict[str, str]:
        """The environment of whoever shall use this AWS, and never a real account."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str) -> Any:
        """A new boto3 client for the embedded AWS, whatever this process's environment says."""
        return Session().client(  # type: ignore[call-overload]
            service,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            region_name=REGION,
            config=CLIENT_CONFIG,
        )

    def api_url(self, outputs: Mapping[str, str]) -> str:
        """By address: the host names that AWS gives to APIs resolve on few machines."""
        return f"{self.endpoint}/_aws/execute-api/{outputs['ApiId']}/$default"


class Emulator:
    """A running emulator on a free port of this machine. Stops at the end of a `with` block.

    Unless it is `detached`, it also ends with this process, even when that is killed. `auth`
    enforces the policies of the functions' roles.
    """

    def __init__(self, *, auth: bool = False, detached: bool = False) -> None:
        python = install()
        on_a_free_port(lambda port: self._start(port, python, auth=auth, detached=detached))
        if not detached:
            atexit.register(self.stop)

    def _start(self, port: int, python: Path, *, auth: bool, detached: bool) -> None:
        # cdk remembers the account of an access key, so that no two emulators may share one.
        key = f"LOCAL{secrets.token_hex(8).upper()}"
        self.access = Access(f"http://{HOST}:{port}", key, secrets.token_hex(16))
        self.folder = BUILD / f"emulator-{port}"
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        self.log = self.folder / "log.txt"
        # Functions run as its children: no variable of ours may change what they do.
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment = kept | {
            **self.access.variables(),
            "GATEWAY_PORT": str(port),
            "BIND_HOST": HOST,
            "MINISTACK_HOST": HOST,
            "PERSIST_STATE": "0",
            "AUTH": "true" if auth else "false",
            "TMPDIR": str(self.folder / "tmp"),
        }
        program = ["-m", "ministack"] if detached else ["-c", _LEASHED]
        self._serving = Serving(
            [python, *program],
            cwd=self.folder,
            env=environment,
            log=self.log,
            detached=detached,
        )
        self._serving.wait_until(
            lambda: answers(self.access.endpoint), "The embedded AWS did not start.", _ADVICE
        )

    @property
    def pid(self) -> int:
        return self._serving.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process and its workers, and forget what it stored. May be called again."""
        if not self.folder.exists():
            return  # and by now the process id may be somebody else's
        atexit.unregister(self.stop)
        self._serving.stop()
        LOGS.mkdir(exist_ok=True)
        self.log.replace(LAST_LOG)
        shutil.rmtree(self.folder)


def install() -> Path:
    """The interpreter that has the emulator; installed on first use of these versions."""
    names = "-".join(requirement.replace("==", "-") for requirement in _REQUIREMENTS)
    place = BUILD / f"{names}-python-3.13"
    python = place / "bin" / "python"
    with commands.only_one("emulator-environment"):
        if not (place / "complete").exists():
            uv = commands.uv()
            advice = "See whether a package index can be reached."
            commands.run(
                [uv, "venv", "--clear", "--python", commands.this_python(), place],
                log="emulator-venv.txt",
                advice=advice,
            )
            commands.run(
                [uv, "pip", "install", "--python", python, *_REQUIREMENTS],
                log="emulator-install.txt",
                advice=advice,
            )
            (place / "complete").touch()
    return python


def answers(endpoint: str) -> bool:
    """Whether an emulator stands behind the endpoint and is ready."""
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/ready", timeout=2) as response:  # noqa: S310
            return bool(response.status == HTTPStatus.OK)
    except OSError:
        return False
