"""A stand-in of Google Cloud Storage for the calls of its XML interface that a backup makes.

Objects with generations: PUT, GET, HEAD and DELETE with x-goog-if-generation-match and If-None-Match, listing with
prefixes, delimiters and pages, multipart uploads. Everything is in memory."""

import hashlib
import http.server
import itertools
import threading
import urllib.parse
import xml.etree.ElementTree
from xml.sax.saxutils import escape

# Few, so that a listing of some objects has pages.
PAGE = 20


class Bucket:
    """The objects of a bucket, (bytes, generation) by name."""

    def __init__(self):
        self.lock = threading.Lock()
        self.objects, self.uploads = {}, {}
        self.numbers = itertools.count(1_700_000_000_000_001)

    def put(self, name, content, wanted=None):
        """The new generation, or None if the object hasn't the wanted one (0: none)."""
        with self.lock:
            if wanted is not None and wanted != self.objects.get(name, (b"", 0))[1]:
                return None
            generation = next(self.numbers)
            self.objects[name] = content, generation
            return generation


class Gcs:
    """The stand-in with its buckets, by name."""

    def __init__(self):
        self.buckets = {}
        outer = self

        class Handler(_Handler):
            gcs = outer

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = self._server.server_address[:2]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    gcs = None

    def log_message(self, *_):
        """Prints nothing."""

    def _handle(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        bucket_name, _, name = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        bucket = self.gcs.buckets.get(bucket_name)
        if bucket is None:
            return self._error(404, "NoSuchBucket", "The specified bucket does not exist.")
        if not name:
            return self._list(bucket, bucket_name, query)
        if "uploads" in query or "uploadId" in query:
            return self._multipart(bucket, bucket_name, name, query, body)
        return getattr(self, f"_{self.command.lower()}")(bucket, name, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle

    def _wanted(self):
        if (wanted := self.headers.get("x-goog-if-generation-match")) is not None:
            return int(wanted)
        return 0 if self.headers.get("If-None-Match") == "*" else None

    def _put(self, bucket, name, body):
        source = self.headers.get("x-goog-copy-source")
        if source is not None:
            body = bucket.objects[urllib.parse.unquote(source).lstrip("/").partition("/")[2]][0]
        generation = bucket.put(name, body, self._wanted())
        if generation is None:
            return self._error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")
        return self._answer(200, self._named(body, generation))

    def _get(self, bucket, name, _):
        found = bucket.objects.get(name)
        if found is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        content, generation = found
        headers = self._named(content, generation)
        if (bounds := self.headers.get("Range")) is None:
            return self._answer(200, headers, content)
        first, _, last = bounds.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(content) - int(last)
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        return self._answer(206, headers, content[start:end])

    _head = _get

    def _delete(self, bucket, name, _):
        with bucket.lock:
            found = bucket.objects.pop(name, None)
        if found is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        return self._answer(204, {})

    def _multipart(self, bucket, bucket_name, name, query, body):
        if "uploads" in query:
            upload = f"upload{next(bucket.numbers)}"
            bucket.uploads[upload] = {}
            return self._xml(
                f"<InitiateMultipartUploadResult><Bucket>{bucket_name}</Bucket><Key>{escape(name)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        parts = bucket.uploads.get(query["uploadId"])
        if parts is None:
            return self._error(404, "NoSuchUpload", "The upload does not exist.")
        if self.command == "PUT":
            parts[int(query["partNumber"])] = body
            return self._answer(200, {"ETag": _etag(body)})
        del bucket.uploads[query["uploadId"]]
        if self.command == "DELETE":
            return self._answer(204, {})
        named = [int(part.text) for part in xml.etree.ElementTree.fromstring(body).iter() if part.tag.endswith("PartNumber")]
        content = b"".join(parts[number] for number in named)
        generation = bucket.put(name, content, self._wanted())
        if generation is None:
            return self._error(412, "PreconditionFailed", "The object is there already.")
        return self._xml(
            f"<CompleteMultipartUploadResult><Bucket>{bucket_name}</Bucket><Key>{escape(name)}</Key>"
            f"<ETag>{escape(_etag(content))}</ETag></CompleteMultipartUploadResult>",
            {"x-goog-generation": str(generation)},
        )

    def _list(self, bucket, bucket_name, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        with bucket.lock:
            names = sorted(name for name in bucket.objects if name.startswith(prefix))
        entries = {}
        for name in names:
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.partition(delimiter)[0] + delimiter
                entries[folder] = f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            else:
                content = bucket.objects[name][0]
                entries[name] = (
                    f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size><ETag>{escape(_etag(content))}</ETag>"
                    "<LastModified>2026-11-30T00:00:00.000Z</LastModified></Contents>"
                )
        later = [name for name in entries if name > after]
        page = later[: min(PAGE, int(query.get("max-keys", PAGE)))]
        more = len(later) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self._xml(
            f"<ListBucketResult><Name>{bucket_name}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(entries[name] for name in page)}</ListBucketResult>"
        )

    def _named(self, content, generation):
        return {
            "ETag": _etag(content),
            "x-goog-generation": str(generation),
            "Last-Modified": "Mon, 30 Nov 2026 00:00:00 GMT",
            "Content-Type": "application/octet-stream",
        }

    def _xml(self, text, headers=None):
        answer = b'<?xml version="1.0" encoding="UTF-8"?>' + text.encode()
        self._answer(200, {"Content-Type": "application/xml", **(headers or {})}, answer)

    def _error(self, status, code, message):
        body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self._answer(status, {"Content-Type": "application/xml"}, body.encode())

    def _answer(self, status, headers, body=b""):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _etag(content):
    return '"' + hashlib.md5(content).hexdigest() + '"'
