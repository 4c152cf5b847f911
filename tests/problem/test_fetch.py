"""`data get` against a real HTTP server that breaks off, lies about lengths, and serves what it should not."""

import bz2
import lzma
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from helpers import refusals

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.problem.datasets import fetch, libsvm
from mpi_compress.problem.datasets.known import KNOWN, LibsvmSet

TEXT = "".join(f"{1 - 2 * (i % 2)} {i % 7 + 1}:{i}.25 {i % 7 + 9}:1\n" for i in range(5000)).encode()  # N = 5000, d = 15
PACKED = bz2.compress(TEXT)


@dataclass
class Site:
    """What the server serves, and how it misbehaves."""

    files: dict[str, bytes]
    ranges: bool = True
    breaks_after: int | None = None  # bytes of a connection
    announces: int = 0  # more than it has; less where negative
    status: int | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""
    change: tuple[int, dict[str, bytes]] | None = None  # after so many requests: other files


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site: Site = self.server.site
        name, wanted = self.path.removeprefix("/"), self.headers.get("Range")
        site.asked.append((name, wanted))
        if site.change and len(site.asked) > site.change[0]:
            site.files, site.change = site.change[1], None
        self.close_connection = True
        if site.status or name not in site.files:
            self.send_error(site.status or 404)
            return
        body = site.files[name]
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and site.ranges else 0
        if start >= len(body) and start > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.end_headers()
            return
        total = len(body) + site.announces
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        self.send_header("Content-Length", str(total - start))
        self.end_headers()
        self.wfile.write(body[start:][: site.breaks_after])

    def log_message(self, *_):
        pass


@pytest.fixture
def site(monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.site = Site({"tiny": TEXT, "pack.bz2": PACKED, "one.bz2": PACKED, "two.bz2": bz2.compress(TEXT[:-1])})
    server.site.url = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("MPI_COMPRESS_DATA_URL", server.site.url)
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MPI_COMPRESS_DATA", raising=False)
    monkeypatch.setattr(fetch, "_WAIT", 0.0)
    monkeypatch.setitem(KNOWN, "tiny", LibsvmSet(15, 5000, ("tiny",), nonzeros=10000))
    monkeypatch.setitem(KNOWN, "packed", LibsvmSet(15, 5000, ("pack.bz2",), nonzeros=10000))
    monkeypatch.setitem(KNOWN, "joined", LibsvmSet(15, 10000, ("one.bz2", "two.bz2"), nonzeros=20000))
    yield server.site
    server.shutdown()
    server.server_close()


@pytest.fixture
def sets(tmp_path):
    return tmp_path / "cache" / "sets"


def refused(names, capfd, words="") -> str:
    """The one line that `data get` ends in."""
    return refusals.refused(["data", "get", "--quiet", *names], capfd, words)


def test_a_set_is_fetched_checked_and_remembered(site, sets, capfd):
    assert main(["data", "get", "tiny", "packed"]) == 0
    assert capfd.readouterr().out.split() == [str(sets / "tiny"), str(sets / "packed.bz2")]
    assert (sets / "tiny").read_bytes() == TEXT
    assert main(["data", "get", "tiny"]) == 0
    assert len(site.asked) == 2  # what is there is not asked for again
    assert not [f for f in sets.rglob("*") if f.is_file() and f.name.split(".")[0] not in ("tiny", "packed")]


def test_a_set_that_is_not_fetched_is_told(sets, capfd):
    refused(["census-income"], capfd, "census-income is not fetched put $MPI_COMPRESS_DATA")


def test_parts_are_joined_with_a_line_end_between_them(site, sets, capfd):
    site.files["one.bz2"], site.files["two.bz2"] = site.files["two.bz2"], site.files["one.bz2"]  # the first lacks its last line end
    assert main(["data", "get", "joined", "--quiet"]) == 0
    assert b"".join(libsvm.open_text(sets / "joined.bz2")) == TEXT[:-1] + b"\n" + TEXT


def test_a_broken_download_goes_on_from_where_it_broke(site, sets, capfd):
    site.breaks_after = 40_000
    assert main(["data", "get", "tiny", "--quiet"]) == 0
    assert (sets / "tiny").read_bytes() == TEXT
    assert [r for _, r in site.asked] == [None, *(f"bytes={k}-" for k in range(40_000, len(TEXT), 40_000))]


def test_it_goes_on_in_a_later_command_too(site, sets, capfd, monkeypatch):
    site.breaks_after = 40_000
    monkeypatch.setattr(fetch, "ATTEMPTS", 0)
    assert "40000 bytes are there" in refused(["tiny"], capfd)
    monkeypatch.setattr(fetch, "ATTEMPTS", 4)
    site.breaks_after = None
    assert main(["data", "get", "tiny", "--quiet"]) == 0
    assert [r for _, r in site.asked] == [None, "bytes=40000-"]
    assert (sets / "tiny").read_bytes() == TEXT


@pytest.mark.parametrize("after", [b"", TEXT[:5000]])
def test_a_file_that_changes_on_the_way_is_refused_and_then_begun_again(site, sets, capfd, after):
    site.files["tiny"] = b"# an older edition\n" + TEXT + after
    site.breaks_after = 50_000
    site.change = (1, {"tiny": TEXT})
    refused(["tiny"], capfd, "what came for tiny is")
    assert main(["data", "get", "tiny", "--quiet"]) == 0
    assert (sets / "tiny").read_bytes() == TEXT


def test_without_ranges_a_connection_that_breaks_is_given_up_after_some_attempts(site, sets, capfd):
    site.ranges, site.breaks_after = False, 40_000
    assert f"the connection ended at 40000 of {len(TEXT)} bytes" in refused(["tiny"], capfd)
    assert not (sets / "tiny").exists()
    site.breaks_after = None
    assert main(["data", "get", "tiny", "--quiet"]) == 0


@pytest.mark.parametrize(("name", "lie", "says"), [
    ("tiny", 100, "the connection ended at"),
    ("packed", 100, "connection"),
    ("tiny", -1000, "is no LIBSVM text|N = 49.., .*N = 5000"),
    ("packed", -1000, "is damaged or cut short"),
])  # fmt: skip
def test_a_wrong_length_is_found_out(site, sets, capfd, name, lie, says):
    site.announces = lie
    assert re.search(says, refused([name], capfd))
    assert not [f for f in sets.glob("*") if f.is_file()]


@pytest.mark.parametrize(("content", "says"), [
    (b"<!DOCTYPE html>\n<p>Please log in\n", "what came for tiny is no LIBSVM text: 1: '<!DOCTYPE'"),
    (b"", "N = 0, and N = 5000 is published"),
    (TEXT[: TEXT.index(b"\n") + 1], "N = 1 N = 5000"), (TEXT + b"1 1:1\n", "N = 5001 N = 5000"),
    (TEXT.replace(b" 15:", b" 16:"), "d = 16 d = 15"), (TEXT.replace(b" 15:1", b""), "d = 14 d = 15"),
    (TEXT.replace(b":77.25", b":nan"), "value 'nan' of index"),
])  # fmt: skip
def test_wrong_content_is_refused_and_not_kept(site, sets, capfd, content, says):
    site.files["tiny"] = content
    refused(["tiny"], capfd, says)
    assert not [f for f in sets.rglob("*") if f.is_file()]
    site.files["tiny"] = TEXT
    assert main(["data", "get", "tiny", "--quiet"]) == 0


@pytest.mark.parametrize(("status", "says"), [(404, "the server says 404 Not Found"), (503, "the server says 503")])
def test_what_the_server_says_is_refused(site, sets, capfd, status, says):
    site.status = status
    assert says in refused(["tiny"], capfd)
    assert len(site.asked) == (1 if status == 404 else fetch.ATTEMPTS)  # a 404 will not pass by waiting


def test_a_server_that_cannot_be_reached_is_named(site, capfd):
    assert "Connection refused" in (text := refused(["tiny", "--from", "http://127.0.0.1:9/x"], capfd))
    assert "http://127.0.0.1:9/x/tiny" in text


def test_a_real_set_is_fetched_and_run(real_data, site, sets, tmp_path, capfd):
    site.files["a9a"] = lzma.decompress((real_data / "a9a.xz").read_bytes())
    assert main(["data", "get", "a9a", "--quiet"]) == 0
    job = tmp_path / "job.toml"
    job.write_text('[data]\nname = "a9a"\n[objective]\nmu = "1e-4 L"\n[algorithm]\nname = "gd"\n[stop]\nrounds = 2\n')
    (result,) = mc.run(mc.load_job(job), out=tmp_path)
    assert result.attrs["n_samples"] == 32561
