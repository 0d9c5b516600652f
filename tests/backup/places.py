"""Stores of objects that stand in for those of S3, Google and Azure, and a directory.

Each has the same look at its objects, which doesn't go through the proxy: `names`, `get`, `put`, `delete`."""

import base64
import email.utils
import hashlib
import hmac
import http.client
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree

from gcs import Bucket, Gcs
from ring import free_port
from server import eventually

BUCKET = "backups"
LOOPBACK = "127.0.0.1"
AZURITE = pathlib.Path(__file__).parent / "azurite/node_modules/azurite/dist/src/blob/main.js"
# The account of Azurite, which is published with it.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Directory:
    """A directory of this machine."""

    kind = "file"

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def location(self, prefix):
        return f"file://{self.root / prefix}"

    def environment(self, url=None):
        return {}

    def names(self, prefix):
        folder = self.root / prefix
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def get(self, prefix, name):
        return (self.root / prefix / name).read_bytes()

    def put(self, prefix, name, content):
        (self.root / prefix / name).write_bytes(content)

    def delete(self, prefix, name):
        (self.root / prefix / name).unlink()


class _Process:
    """A server of a stand-in, ready when its port is open."""

    def __init__(self, command, directory):
        self.address = LOOPBACK, free_port(LOOPBACK)
        self._directory = pathlib.Path(directory)
        self._command = [word.replace("PORT", str(self.address[1])) for word in map(str, command)]

    def __enter__(self):
        with open(self._directory / "log", "wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._directory)
        eventually(self._is_open, 60)
        self.made()
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)

    def made(self):
        """Called once the server answers: makes the bucket."""

    def _is_open(self):
        assert self._process.poll() is None, (self._directory / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(self.address) == 0


class S3(_Process):
    """S3 by moto."""

    kind = "s3"

    def __init__(self, directory):
        program = pathlib.Path(sys.executable).parent / "moto_server"
        super().__init__([program, "-H", LOOPBACK, "-p", "PORT"], directory)

    def made(self):
        import boto3

        self.client = boto3.client(
            "s3",
            endpoint_url="http://{}:{}".format(*self.address),
            region_name="us-east-1",
            aws_access_key_id="annulus",
            aws_secret_access_key="secret",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def location(self, prefix):
        return f"s3:{BUCKET}/{prefix}"

    def environment(self, url):
        return {
            "AWS_ACCESS_KEY_ID": "annulus",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": url,
        }

    def names(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix + "/")
        return sorted(entry["Key"].removeprefix(prefix + "/") for page in pages for entry in page.get("Contents", []))

    def get(self, prefix, name):
        return self.client.get_object(Bucket=BUCKET, Key=f"{prefix}/{name}")["Body"].read()

    def put(self, prefix, name, content):
        self.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=content)

    def delete(self, prefix, name):
        self.client.delete_object(Bucket=BUCKET, Key=f"{prefix}/{name}")


class Google(Gcs):
    """Google's store by the stand-in of our own: fake-gcs-server has no PUT of the XML interface."""

    kind = "gcs"

    def __init__(self, _):
        super().__init__()

    def __enter__(self):
        self.buckets[BUCKET] = self._bucket = Bucket()
        return super().__enter__()

    def location(self, prefix):
        return f"gcs:{BUCKET}/{prefix}"

    def environment(self, url):
        return {"STORAGE_EMULATOR_HOST": url}

    def names(self, prefix):
        return sorted(name.removeprefix(prefix + "/") for name in self._bucket.objects if name.startswith(prefix + "/"))

    def get(self, prefix, name):
        return self._bucket.objects[f"{prefix}/{name}"][0]

    def put(self, prefix, name, content):
        self._bucket.put(f"{prefix}/{name}", content)

    def delete(self, prefix, name):
        del self._bucket.objects[f"{prefix}/{name}"]


class Azure(_Process):
    """Azure's store by Azurite, which runs in Node."""

    kind = "azure"

    def __init__(self, directory):
        command = ["node", AZURITE, "--blobHost", LOOPBACK, "--blobPort", "PORT", "--location", directory]
        super().__init__([*command, "--skipApiVersionCheck", "--disableTelemetry", "--silent"], directory)

    def made(self):
        self._request("PUT", "", {"restype": "container"})

    def location(self, prefix):
        return f"azure:{AZURE_ACCOUNT}/{BUCKET}/{prefix}"

    def environment(self, url):
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
            "AZURE_STORAGE_ENDPOINT": f"{url}/{AZURE_ACCOUNT}",
        }

    def names(self, prefix):
        names, marker = [], ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": prefix + "/", "marker": marker}
            answer = xml.etree.ElementTree.fromstring(self._request("GET", "", query))
            names += [name.text.removeprefix(prefix + "/") for name in answer.iterfind("Blobs/Blob/Name")]
            marker = answer.findtext("NextMarker") or ""
            if not marker:
                return sorted(names)

    def get(self, prefix, name):
        return self._request("GET", f"/{prefix}/{name}")

    def put(self, prefix, name, content):
        self._request("PUT", f"/{prefix}/{name}", content=content)

    def delete(self, prefix, name):
        self._request("DELETE", f"/{prefix}/{name}")

    def _request(self, method, path, query=None, content=None):
        """The body of an answer to a request that is signed by the account's key."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2024-11-04"}
        if content is not None:
            headers["x-ms-blob-type"] = "BlockBlob"
        path = f"/{AZURE_ACCOUNT}/{BUCKET}{path}"
        query = {name: value for name, value in (query or {}).items() if value}
        length = str(len(content)) if content else ""
        # Encoding, language, length, digest, type, date, four conditions and the range: all empty but the length.
        lines = [method, "", "", length, "", "", "", "", "", "", "", ""]
        lines += [f"{name}:{headers[name]}" for name in sorted(headers)]
        lines += [f"/{AZURE_ACCOUNT}{path}"] + [f"{name}:{query[name]}" for name in sorted(query)]
        digest = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
        headers["Content-Length"] = str(len(content or b""))
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        connection.request(method, path + ("?" + urllib.parse.urlencode(query) if query else ""), content or b"", headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300, (answer.status, text)
        return text


def is_there(kind):
    """Whether this machine has what a stand-in needs, or the reason why not."""
    if kind == "azure" and (shutil.which("node") is None or not AZURITE.exists()):
        return "Azurite is not installed: make test-backup, with Node"
    if kind == "s3" and not (pathlib.Path(sys.executable).parent / "moto_server").exists():
        return "moto is not installed: make test-backup"
    return None


KINDS = {"s3": S3, "gcs": Google, "azure": Azure}
