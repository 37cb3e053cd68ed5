"""/v1/frames and the pictures of frames, from a real server over drawn frames."""

import fcntl
import io
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from api.app import create_app
from api.frame_images.image_cache import ImageCache
from api.http import made_image_answer
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records import sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from ingest.scan.scan import scan_source
from tests.api.servers import serving
from tests.ingest.s3_server import free_port, moto
from tests.pipeline.homes import FRAMES, SAMPLE, add_source, copy_home, open_home

CLASSES = SAMPLE / "camera_lidar_semantic" / "class_list.json"


@dataclass
class Served:
    """A server, the home that it serves, and the source's folder, which a test may change."""

    client: httpx.Client
    home: Path
    root: Path

    def get(self, path: str, status: int = 200, **more: Any) -> httpx.Response:
        """An answer, which must be of that status."""
        answer = self.client.get(path, **more)
        assert answer.status_code == status, answer.text
        return answer

    def frames(self, **params: Any) -> list[dict[str, Any]]:
        """The frames of one page."""
        frames: list[dict[str, Any]] = self.get("/v1/frames", params=params).json()["frames"]
        return frames

    def picture(self, path: str, **params: Any) -> Image.Image:
        """A picture, decoded."""
        answer = self.get(path, params=params)
        image = Image.open(io.BytesIO(answer.content))
        assert answer.headers["content-type"] == f"image/{(image.format or '').lower()}"
        return image

    def cached(self) -> list[Path]:
        """Files of the cache of made images."""
        return [path for path in (self.home / "cache" / "images").rglob("*") if path.is_file()]


@contextmanager
def serving_frames(catalogued: Path, folder: Path) -> Iterator[Served]:
    """The sample frames in a folder of their own, and a server of them."""
    home = copy_home(catalogued, folder, with_source=True)
    with serving(home) as (url, _), httpx.Client(base_url=url, timeout=120) as client:
        yield Served(client, home, folder / "source")


@pytest.fixture
def served(catalogued: Path, tmp_path: Path) -> Iterator[Served]:
    """For a test that changes files."""
    with serving_frames(catalogued, tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def shared(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For tests that change none."""
    with serving_frames(catalogued, tmp_path_factory.mktemp("shared")) as server:
        yield server


def key_of(fkey: str) -> str:
    """A file's place below the source's root."""
    return fkey.removeprefix("local:a2d2:")


@pytest.mark.wide
def test_pages_are_of_one_snapshot(served: Served, tmp_path: Path) -> None:
    """Every frame once, in order, whatever is catalogued meanwhile; another question is refused."""
    everything = served.frames()
    assert len(everything) == FRAMES
    assert [frame["fkey"] for frame in everything] == sorted(f["fkey"] for f in everything)
    params = {"limit": 7, "columns": "camera, car"}
    page = served.get("/v1/frames", params=params).json()
    assert list(page["frames"][0]) == ["fkey", "camera", "car"]
    workspace = open_home(served.home)
    add_source(workspace, "second", SAMPLE)
    workspace.close()
    frames, snapshot = page["frames"], page["snapshot"]
    while page["next"]:
        cursor = page["next"]
        page = served.get("/v1/frames", params={**params, "cursor": cursor}).json()
        assert page["snapshot"] == snapshot
        frames += page["frames"]
    assert [frame["fkey"] for frame in frames] == [frame["fkey"] for frame in everything]
    assert len(served.frames(limit=100)) == 2 * FRAMES
    for wrong in (
        {"cursor": cursor, "camera": "front_center"}, {"cursor": cursor, "at": snapshot},
        {"cursor": cursor[:-5]}, {"cursor": "é"}, {"cursor": "W10"}, {"cursor": "bnVsbA"},
        {"cursor": "WzEsICJcdWQ4MDAiLCAiIl0"}, {"columns": "nonsense"}, {"columns": "fkey_hash"},
        {"question": '{"limit": 3}'}, {"question": '{"sample": 3}'}, {"range": "cra=1:"},
        {"where": "1 = "}, {"where": "1) or (1 = 1"},
    ):  # fmt: skip
        assert served.client.get("/v1/frames", params=wrong).status_code == 400, wrong
    assert served.client.get("/v1/frames", params={"limit": 0}).status_code == 422
    assert served.client.get("/v1/frames", params={"at": 10**9}).status_code == 404


@pytest.mark.wide
def test_frames_of_a_question_are_those_of_the_selection(shared: Served) -> None:
    """The same frames as POST /v1/selections, and an ETag that changes with the answer."""
    question = {"ranges": [{"tag": "car", "lowest": 20_000}], "cameras": ["front_center"]}
    expected = shared.client.post("/v1/selections", json=question).json()["frames"]
    params = {"range": "car=20000:", "camera": "front_center", "columns": "car,image_file"}
    answer = shared.get("/v1/frames", params=params)
    assert 0 < len(expected) < FRAMES
    assert answer.json()["frames"] == [
        {name: frame[name] for name in ("fkey", "car", "image_file")}
        for frame in sorted(expected, key=lambda frame: str(frame["fkey"]))
    ]
    shared.client.post("/v1/datasets", json={"name": "city", "question": question})
    assert len(shared.frames(dataset="city")) == len(expected)
    assert len(shared.frames(dataset="city", range="car=1000000:")) == 0
    known = {"If-None-Match": f'"other", W/{answer.headers["etag"]}'}
    unchanged = shared.get("/v1/frames", 304, params=params, headers=known)
    assert unchanged.content == b""
    shared.get("/v1/frames", params={**params, "range": "car=1:"}, headers=known)


def test_one_frame_is_all_that_is_known_of_it(shared: Served) -> None:
    """Metaocean's columns, every tag, and links that lead to its pictures."""
    fkey = shared.frames()[3]["fkey"]
    answer = shared.get(f"/v1/frames/{fkey}")
    frame = answer.json()
    selected = shared.client.post("/v1/selections", json={}).json()["frames"]
    row = next(one for one in selected if one["fkey"] == fkey)
    file, tags = frame["file"], frame["tags"]
    assert (file["filename"], file["size"]) == (row["filename"], row["image_size"])
    assert {name: tags[name] for name in ("scene", "camera", "car", "sky", "label_file")} == {
        name: row[name] for name in ("scene", "camera", "car", "sky", "label_file")
    }
    assert {"front", "unknown_pixels", "label_file"} < set(tags)
    assert shared.get(frame["links"]["self"]).json() == frame
    for kind in ("image", "label", "overlay"):
        assert shared.get(frame["links"][kind]).headers["content-type"].startswith("image/")
    shared.get(f"/v1/frames/{fkey}", 304, headers={"If-None-Match": answer.headers["etag"]})
    shared.get(f"/v1/frames/{fkey}", 404, params={"at": 10**9})
    for kind in ("frames", "images", "labels", "overlays"):
        for wrong in (f"{fkey}/image", f"{fkey}x", "", "local:a2d2:", "%ff", "..%2f..%2fx"):
            answer = shared.get(f"/v1/{kind}/{wrong}", 404)
            assert answer.headers["content-type"] == "application/problem+json"


def test_the_original_comes_whole_or_in_ranges(shared: Served) -> None:
    """Byte for byte; 206 and 416, If-Range, HEAD, 304."""
    fkey = shared.frames()[0]["fkey"]
    content = (shared.root / key_of(fkey)).read_bytes()
    path, size, cached = f"/v1/images/{fkey}", len(content), shared.cached()
    whole = shared.get(path)
    etag = whole.headers["etag"]
    assert whole.content == content
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["cache-control"] == "private, no-cache"
    for byte_range, start, end in (
        ("bytes=0-99", 0, 100), ("bytes=100-", 100, size), ("bytes=-50", size - 50, size),
        ("bytes=7-7", 7, 8), (f"bytes={size - 1}-{10**15}", size - 1, size),
        (f"bytes=-{10**15}", 0, size),
    ):  # fmt: skip
        response = shared.get(path, 206, headers={"Range": byte_range, "If-Range": etag})
        assert response.content == content[start:end]
        assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    for byte_range in ("bytes=5-4", "bytes=a-", "lines=1-2", "bytes=0-1,5-6", "bytes=-", ""):
        assert shared.get(path, headers={"Range": byte_range}).content == content
    for byte_range in (f"bytes={size}-", "bytes=-0", f"bytes={10**16}-"):
        answer = shared.get(path, 416, headers={"Range": byte_range})
        assert answer.headers["content-range"] == f"bytes */{size}"
    stale = {"Range": "bytes=0-9", "If-Range": '"older"'}
    assert shared.get(path, headers=stale).content == content
    head = shared.client.head(path, headers={"Range": "bytes=0-9"})
    assert (head.status_code, head.headers["content-length"]) == (200, str(size))
    assert (head.content, head.headers["etag"]) == (b"", etag)
    shared.get(path, 304, headers={"If-None-Match": etag})
    assert shared.cached() == cached


@pytest.mark.wide
def test_an_original_is_what_its_content_says(served: Served) -> None:
    """A JPEG that is named as a PNG: its media type, in ranges, where Accept allows it, drawn.

    Where Accept allows PNG alone it is drawn as one; a file that has become something else is not
    served, nor is a label that has become a JPEG.
    """
    fkey, other = (frame["fkey"] for frame in served.frames()[:2])
    file, path = served.root / key_of(fkey), f"/v1/images/{fkey}"
    jpeg = io.BytesIO()
    Image.open(file).convert("RGB").save(jpeg, "JPEG", quality=90, progressive=True)
    file.write_bytes(jpeg.getvalue())
    content, kinds = jpeg.getvalue(), []
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "image/jpeg"}, {"Accept": "image/*"}):
        answer = served.get(path, headers=headers)
        assert answer.content == content
        kinds.append(answer.headers["content-type"])
    assert kinds == ["image/jpeg"] * 4
    assert served.client.head(path).headers["content-type"] == "image/jpeg"
    part = served.get(path, 206, headers={"Range": "bytes=1000-1099"})
    assert (part.content, part.headers["content-type"]) == (content[1000:1100], "image/jpeg")
    pixels = np.asarray(Image.open(jpeg))
    drawn = served.get(path, headers={"Accept": "image/png"})
    assert drawn.headers["content-type"] == "image/png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(drawn.content))), pixels)
    overlay = served.picture(f"/v1/overlays/{fkey}", format="png", alpha=0)
    assert np.array_equal(np.asarray(overlay), pixels)
    untouched = served.get(f"/v1/images/{other}")
    assert untouched.headers["content-type"] == "image/png"
    assert served.get(path, 304, headers={"If-None-Match": answer.headers["etag"]}).content == b""
    file.write_bytes(content[:-1])
    assert "JPEG is truncated" in served.get(path, 422, params={"width": 20}).text
    file.write_bytes(b"GIF89a" + content)
    for headers in ({}, {"Range": "bytes=100-200"}):
        assert "is no PNG or JPEG image any more" in served.get(path, 422, headers=headers).text
    label = served.root / served.get(f"/v1/frames/{fkey}").json()["tags"]["label_file"]
    label.write_bytes(content)
    assert "is no PNG image any more" in served.get(f"/v1/labels/{fkey}", 422).text


@pytest.mark.wide
def test_a_large_original_is_streamed(served: Served) -> None:
    """In parts, which are put together to the same bytes."""
    fkey = served.frames()[0]["fkey"]
    file = served.root / key_of(fkey)
    content = file.read_bytes() + os.urandom(9 * 2**20 + 3)
    file.write_bytes(content)
    assert served.get(f"/v1/images/{fkey}").content == content
    response = served.get(f"/v1/images/{fkey}", 206, headers={"Range": "bytes=1000-9000000"})
    assert response.content == content[1000:9000001]


@pytest.mark.wide
def test_images_are_made_smaller_in_each_format(shared: Served) -> None:
    """They fit, keep their shape and never grow; the second one comes out of the cache."""
    fkey = shared.frames()[5]["fkey"]
    path, cached = f"/v1/images/{fkey}", len(shared.cached())
    original = Image.open(shared.root / key_of(fkey)).convert("RGB")
    for params, size in (
        ({"width": 480}, (480, 302)), ({"height": 302, "format": "webp"}, (480, 302)),
        ({"width": 480, "height": 100, "format": "png"}, (159, 100)),
        ({"width": 8000, "format": "png"}, original.size),
    ):  # fmt: skip
        image = shared.picture(path, **params)
        assert image.size == size
        small = np.asarray(original.resize(size, Image.Resampling.LANCZOS), dtype=int)
        assert np.abs(np.asarray(image.convert("RGB"), dtype=int) - small).mean() < 4
    assert len(shared.cached()) == cached + 4
    first = shared.get(path, params={"width": 480})
    assert len(shared.cached()) == cached + 4
    assert (
        shared.get(path, params={"width": 480, "quality": 20}).headers["etag"]
        != (first.headers["etag"])
    )
    shared.get(path, 304, params={"width": 480}, headers={"If-None-Match": first.headers["etag"]})
    response = shared.get(path, 206, params={"width": 480}, headers={"Range": "bytes=10-19"})
    assert response.content == first.content[10:20]
    head = shared.client.head(path, params={"width": 480})
    assert head.headers["content-length"] == str(len(first.content))
    for wrong in ({"width": 0}, {"width": 10**6}, {"format": "gif"}, {"quality": 0}, {"w": 1}):
        shared.get(path, 422, params=wrong)
    shared.get(path, 400, params={"format": "png", "quality": 50})


@pytest.mark.wide
def test_a_damaged_cache_is_made_anew(served: Served) -> None:
    """Bytes that are not what was written are never served."""
    path = f"/v1/images/{served.frames()[0]['fkey']}?width=100"
    content = served.get(path).content
    (cached,) = served.cached()
    for damaged in (cached.read_bytes()[:-9], b"", b"x" * 500):
        cached.write_bytes(damaged)
        assert served.get(path).content == content
    shutil.rmtree(cached.parent.parent)
    cached.parent.parent.touch()  # where nothing can be written, nothing is cached
    assert served.get(path).content == content


def test_labels_keep_their_colours(shared: Served) -> None:
    """Made smaller, every pixel is one of the label's: nothing is mixed, nothing lost."""
    frame = shared.get(f"/v1/frames/{shared.frames()[0]['fkey']}").json()
    path = frame["links"]["label"]
    file = shared.root / frame["tags"]["label_file"]
    assert shared.get(path).content == file.read_bytes()
    original = Image.open(file).convert("RGB")
    expected = original.resize((320, 201), Image.Resampling.NEAREST)
    for kind in ("png", "webp"):
        label = shared.picture(path, width=320, format=kind).convert("RGB")
        assert np.array_equal(np.asarray(label), np.asarray(expected))
    shared.get(path, 400, params={"format": "jpeg"})
    shared.get(path, 400, params={"format": "webp", "quality": 50})


@pytest.mark.wide
def test_overlays_blend_what_is_asked(shared: Served) -> None:
    """Pixel by pixel: alpha of the label over the image, where the class is asked for."""
    fkey = shared.frames(range="car=20000:")[0]["fkey"]
    frame = shared.get(f"/v1/frames/{fkey}").json()
    path = frame["links"]["overlay"]
    image = np.asarray(Image.open(shared.root / key_of(fkey)).convert("RGB"), dtype=float)
    label = np.asarray(
        Image.open(shared.root / frame["tags"]["label_file"]).convert("RGB"), dtype=float
    )
    cars = (label[..., 0] == 255) & (label[..., 1] == 0) & (label[..., 2] == 0)
    for alpha in (0.0, 0.3, 1.0):
        pixels = np.asarray(shared.picture(path, format="png", alpha=alpha), dtype=float)
        assert np.abs(pixels - (image + alpha * (label - image))).max() <= 1
    only = shared.picture(path, format="png", alpha=1, classes="car, Bicycle")
    pixels = np.asarray(only, dtype=float)
    changed = (pixels != image).any(axis=2)
    assert changed.sum() <= frame["tags"]["car"] + frame["tags"]["bicycle"]
    assert cars.any()
    assert (pixels[cars] == (255, 0, 0)).all()
    assert (pixels[~cars & ~changed] == image[~cars & ~changed]).all()
    assert shared.picture(path, width=200, format="webp").size == (200, 126)
    wrong = shared.get(path, 400, params={"classes": "cra"}).json()
    assert wrong["nearest"] == ["car"]
    shared.get(path, 422, params={"alpha": 1.5})
    shared.get(path, 422, params={"alpha": "nan"})


@pytest.mark.wide
def test_a_changed_file_is_never_served_from_the_cache(served: Served) -> None:
    """Not even one of the same size and time of change."""
    fkey = served.frames()[0]["fkey"]
    path = f"/v1/images/{fkey}?width=64&format=png"
    file = served.root / key_of(fkey)
    old = served.get(path)
    original = served.get(f"/v1/images/{fkey}")
    status, content = file.stat(), file.read_bytes()
    buffer = io.BytesIO()
    Image.new("RGB", (1920, 1208), (9, 99, 199)).save(buffer, "PNG")
    # Behind the end of a PNG anything may stand.
    file.write_bytes(buffer.getvalue() + b"\0" * (len(content) - buffer.tell()))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    new = served.get(path, headers={"If-None-Match": old.headers["etag"]})
    assert Image.open(io.BytesIO(new.content)).getpixel((0, 0)) == (9, 99, 199)
    range_ = {"Range": "bytes=0-9", "If-Range": original.headers["etag"]}
    assert served.get(f"/v1/images/{fkey}", headers=range_).content == file.read_bytes()


def _png(width: int, height: int, pixels: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.wide
def test_bad_files_are_told(served: Served) -> None:
    """Damaged, bombs, other sizes: 422. Gone: 404. A source that is gone: 502. Others go on."""
    first, second, third = served.frames()[:3]
    file = served.root / key_of(first["fkey"])
    good = file.read_bytes()
    bomb, small = zlib.compress(b"\0" * (5_000 * 15_001)), zlib.compress(b"\0" * 30_100)
    for damaged in (
        b"", b"no image", good[:5000], good[:3000] + b"x" + good[3001:],
        _png(5_000, 5_000, bomb), _png(2**31 - 1, 2**31 - 1, bomb), _png(200, 200, small),
    ):  # fmt: skip
        file.write_bytes(damaged)
        served.get(f"/v1/images/{first['fkey']}?width=50", 422)
        served.get(f"/v1/overlays/{first['fkey']}", 422)
        if damaged.startswith(good[:8]):
            assert served.get(f"/v1/images/{first['fkey']}").content == damaged
        else:
            answer = served.get(f"/v1/images/{first['fkey']}", 422)
            assert "no image" not in answer.text
    file.write_bytes(_png(100, 100, small))
    assert served.picture(f"/v1/images/{first['fkey']}", width=50).size == (50, 50)
    served.get(f"/v1/overlays/{first['fkey']}", 422)
    file.unlink()
    served.get(f"/v1/images/{first['fkey']}", 404)
    served.get(f"/v1/labels/{first['fkey']}")
    folder = (served.root / key_of(second["fkey"])).parent
    elsewhere = served.root.parent / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    served.get(f"/v1/images/{second['fkey']}", 404)  # a scan follows no link to a folder either
    served.root.rename(served.root.parent / "gone")
    answer = served.get(f"/v1/images/{third['fkey']}", 502)
    assert str(served.root) not in answer.text
    assert len(served.frames()) == FRAMES


@pytest.mark.wide
def test_a_tar_archive_s_frames(catalogued: Path, tmp_path: Path) -> None:
    """Members of an archive are served as files are, and a replaced archive is noticed."""
    root, odd = tmp_path / "root", "%41 ?a=1#é&+;"
    scene = "20260507_155109"
    shutil.copytree(SAMPLE / "camera_lidar_semantic" / scene, root / odd / scene)
    shutil.copy(CLASSES, root)
    archive = Path(shutil.make_archive(str(tmp_path / "frames"), "tar", root))
    workspace = open_home(tmp_path / "home")
    add_source(workspace, "a2d2", archive)
    workspace.close()
    with (
        serving(tmp_path / "home") as (url, _),
        httpx.Client(base_url=url, timeout=120) as client,
    ):
        served = Served(client, tmp_path / "home", root)
        fkey = served.frames()[0]["fkey"]
        links = served.get(f"/v1/frames/{quote(fkey)}").json()["links"]
        file = root / key_of(fkey)
        content, status = file.read_bytes(), file.stat()
        assert odd in str(file)
        assert served.get(links["image"]).content == content
        response = served.get(links["image"], 206, headers={"Range": "bytes=5-14"})
        assert response.content == content[5:15]
        assert served.picture(links["overlay"], width=99).width == 99
        assert served.picture(links["image"], width=99).width == 99
        small = _png(8, 8, zlib.compress(b"\0" * 200))
        file.write_bytes(small + b"\0" * (len(content) - len(small)))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        shutil.make_archive(str(tmp_path / "frames"), "tar", root)
        assert served.picture(links["image"], width=99).width == 8
        archive.write_bytes(archive.read_bytes()[:-200_000])
        answer = served.client.get(links["image"])
        assert answer.status_code == 502
        assert str(tmp_path) not in answer.text


@pytest.mark.wide
def test_a_bucket_s_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are served as files are; a changed one is made again, a server that is gone: 502."""
    s3, root = moto(), tmp_path / "root"
    s3.sign_in(monkeypatch, tmp_path)
    bucket = s3.new_bucket("pictures")
    scene = "20260507_155109"
    shutil.copytree(SAMPLE / "camera_lidar_semantic" / scene, root / scene)
    shutil.copy(CLASSES, root)
    s3.put_folder(bucket, root, "below/")
    workspace = open_home(tmp_path / "home")
    source = sources.add_source(workspace.records,
        Source(
            name="a2d2", uri=f"s3://{bucket}/below", platform="S3", cluster="local",
            datasource="a2d2", options={"endpoint_url": s3.endpoint},
        )
    )  # fmt: skip
    scan_source(workspace.whole_catalog, workspace.records, source)
    with (
        serving(tmp_path / "home") as (url, _),
        httpx.Client(base_url=url, timeout=120) as client,
    ):
        served = Served(client, tmp_path / "home", root)
        fkey = served.frames()[0]["fkey"]
        path, content = f"/v1/images/{fkey}", (root / key_of(fkey)).read_bytes()
        assert served.get(path).content == content
        response = served.get(path, 206, headers={"Range": "bytes=-20"})
        assert response.content == content[-20:]
        assert served.picture(f"/v1/overlays/{fkey}", width=99).width == 99
        assert served.picture(path, width=99).width == 99
        small = _png(8, 8, zlib.compress(b"\0" * 200))
        s3.client().put_object(Bucket=bucket, Key=f"below/{key_of(fkey)}", Body=small)
        assert served.picture(path, width=99).width == 8
        s3.client().delete_object(Bucket=bucket, Key=f"below/{key_of(fkey)}")
        served.get(path, 404)
        with workspace.records.session() as session:
            record = session.get_one(Source, source.id)
            record.options = {
                "endpoint_url": f"http://127.0.0.1:{free_port()}",
                "give_up_after": 1.0,
            }
        assert "127.0.0.1" not in served.get(path, 502).text
    workspace.close()


@pytest.mark.parametrize("snapshot_memory_mb", [0, pytest.param(200, marks=pytest.mark.wide)])
def test_pictures_obey_collections(
    catalogued: Path, tmp_path: Path, snapshot_memory_mb: int
) -> None:
    """A frame that may not be seen is not there, cached or not; nor is a label of no rule."""
    home = copy_home(catalogued, tmp_path)
    records = RecordStore(home / "records" / "records.sqlite")
    rules = {"anna": "filename like '%/20260507_155109/%'",
             "ida": "filename like '%/20260507_155109/camera/%'", "nobody": "size < 0",
             "root": ""}  # fmt: skip
    headers = {}
    for name, rule in rules.items():
        user = users.add(records, name, ["datauser" if rule else "admin"], None)
        headers[name] = {"Authorization": f"Bearer {tokens.log_in(records, user)}"}
        if rule:
            row_collections.add(records, f"of-{name}", rule)
            row_collections.assign(records, f"of-{name}", name)
    app = create_app(Settings(home=home, cache=None, snapshot_memory_mb=snapshot_memory_mb))
    with TestClient(app) as client:
        frames = client.get("/v1/frames", headers=headers["root"]).json()["frames"]
        if snapshot_memory_mb:
            assert app.state.workspace.catalog.memory.wait(300)
        visible = [frame["fkey"] for frame in frames if frame["scene"] == "20260507_155109"]
        assert 0 < len(visible) < len(frames)

        def status(name: str, kind: str, fkey: str) -> int:
            path = f"/v1/{kind}/{quote(fkey)}?" + ("width=40" if kind != "frames" else "")
            return int(client.get(path, headers=headers[name]).status_code)

        kinds = ("frames", "images", "labels", "overlays")
        for frame in (visible[0], next(f["fkey"] for f in frames if f["fkey"] not in visible)):
            seen = frame in visible
            assert [status("root", kind, frame) for kind in kinds] == [200] * 4
            assert [status("anna", kind, frame) for kind in kinds] == [200 if seen else 404] * 4
            assert [status("nobody", kind, frame) for kind in kinds] == [404] * 4
            assert [status("ida", kind, frame) for kind in kinds] == (
                [200, 200, 404, 404] if seen else [404] * 4
            )
            assert client.get(f"/v1/images/{frame}").status_code == 401

        def listed(name: str, **params: Any) -> list[str]:
            answer = client.get("/v1/frames", params=params, headers=headers[name])
            assert answer.status_code == 200, answer.text
            return [frame["fkey"] for frame in answer.json()["frames"]]

        assert listed("root") == [frame["fkey"] for frame in frames]
        assert listed("anna", where="1 = 1 or size > 0") == visible
        assert listed("ida") == listed("nobody") == []
        # A cursor is no way to other rows: it holds nothing but a place.
        page = client.get("/v1/frames?limit=1", headers=headers["root"]).json()
        assert set(listed("anna", limit=1000, cursor=page["next"])) <= set(visible)
        answer = client.get("/v1/frames?dataset=x", headers=headers["anna"])
        assert answer.status_code == 404  # as for one of which nothing is seen


def test_who_would_wait_too_long_is_told(
    catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 and when to come back; the original, for which nothing is drawn, is served."""
    home = copy_home(catalogued, tmp_path)
    app = create_app(Settings(home=home, cache=None), authenticates=False)
    with TestClient(app) as client:
        path = f"/v1/images/{client.get('/v1/frames').json()['frames'][0]['fkey']}"
        monkeypatch.setattr(made_image_answer, "_PATIENCE_S", 0.0)
        answer = client.get(path, params={"width": 50})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.headers["content-type"] == "application/problem+json"
        assert client.get(path).status_code == 200
        monkeypatch.undo()
        assert client.get(path, params={"width": 50}).status_code == 200


def test_the_cache_stays_within_its_bound(tmp_path: Path) -> None:
    """The least recently used go; parts of killed processes too."""
    left, written = tmp_path / "ab" / "x.part", tmp_path / "ab" / "y.part"
    left.parent.mkdir()
    left.touch()
    with written.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ImageCache(tmp_path, 100_000).put("c" * 64, b"")
        assert (left.exists(), written.exists()) == (False, True)
    cache = ImageCache(tmp_path, 100_000)
    for number in range(300):
        key = f"{number:064x}"[::-1]
        cache.put(key, bytes([number % 256]) * 1000)
        os.utime(tmp_path / key[:2] / key[2:], (number + 10, number + 10))
        assert cache.get(f"{0:064x}") == b"\0" * 1000  # used again and again
    size_bytes = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert 50_000 < size_bytes <= 100_000 * 17 / 16 + 1032
    assert not written.exists()
    assert cache.get(f"{1:064x}"[::-1]) is None
    assert cache.get(f"{299:064x}"[::-1]) == bytes([299 % 256]) * 1000
