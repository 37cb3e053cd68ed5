"""Tar archives as a source, local and on S3: held against Python's tarfile; no mocks."""

import io
import os
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import BadFile, FramesiftError, InvalidInput, StorageError

# Until boto3 is among the dependencies; then these two lines go.
from catalog.records.sources import add_source
from catalog.records.tables import Source
from ingest.labels.class_list import ClassList
from ingest.sources import tar_index
from ingest.sources.local_folder import LocalArchive, LocalFolder
from ingest.sources.schemes import is_archive, open_source
from ingest.sources.source_options import NO_OPTIONS, SourceOptions
from ingest.sources.tar_source import TarSource
from tests.ingest.s3_server import S3Server, breaking_proxy, ceph, moto
from tests.ingest.scene_folders import Home
from tests.ingest.test_s3_source import class_pixels

Member = tuple[str, bytes]


def open_tar(
    uri: str, options: SourceOptions = NO_OPTIONS, index_folder: Path | None = None
) -> TarSource:
    """An archive as users open it."""
    source = open_source(uri, options, index_folder)
    assert isinstance(source, TarSource)
    return source


@pytest.fixture
def moto_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Server:
    """Moto's server, signed in."""
    running = moto()
    running.sign_in(monkeypatch, tmp_path)
    return running


def info(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    """A member's header."""
    member = tarfile.TarInfo(name)
    member.size, member.type, member.mtime = size, kind, 1_600_000_000
    for attribute, value in more.items():
        setattr(member, attribute, value)
    return member


def write_tar(path: Path, members: list[Member], form: int = tarfile.GNU_FORMAT) -> Path:
    """An archive of regular files."""
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in members:
            tar.addfile(info(name, len(content)), io.BytesIO(content))
    return path


def contents(source: TarSource) -> dict[str, bytes]:
    """Every listed file's bytes."""
    return {file.key: source.read(file.key) for file in source.list()}


class InPieces(LocalArchive):
    """A local archive that is indexed by several walks, as one on S3 is."""

    walks = 4


def folder_as_tar(folder: Path, path: Path, prefix: str = "./") -> Path:
    """A folder's tar, as `tar -C FOLDER -cf PATH .` makes it."""
    with tarfile.open(path, "w") as tar:
        tar.add(folder, arcname=prefix.rstrip("/"))
    return path


_NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1,
            max_size=120).filter(lambda name: name not in (".", "..")),
    min_size=1, max_size=3,
).map("/".join)  # fmt: skip
_MEMBERS = st.lists(
    st.tuples(_NAMES, st.binary(max_size=2000), st.sampled_from(["file", "big", "folder", "link"])),
    max_size=12,
)


def generate(path: Path, members: list[tuple[str, bytes, str]], form: int) -> None:
    """An archive of files small and larger, folders and links."""
    with tarfile.open(path, "w", format=form) as tar:
        for name, content, kind in members:
            if kind == "folder":
                tar.addfile(info(name, kind=tarfile.DIRTYPE))
            elif kind == "link":
                tar.addfile(info(name, kind=tarfile.SYMTYPE, linkname="elsewhere"))
            else:
                body = content * (40 if kind == "big" else 1)
                tar.addfile(info(name, len(body)), io.BytesIO(body))


def by_tarfile(path: Path) -> dict[str, bytes]:
    """What tarfile reads: of several members of a name, the last, if it is a file."""
    contents_by_name: dict[str, bytes | None] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            key = "/".join(piece for piece in member.name.split("/") if piece not in ("", "."))
            if not member.isdir():
                opened = tar.extractfile(member) if member.isreg() else None
                contents_by_name[key] = opened.read() if opened else None
    return {key: content for key, content in contents_by_name.items() if content is not None}


@pytest.mark.attacks
@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_chain_of_headers(kind: bytes, tmp_path: Path) -> None:
    """5,000 headers, each about the next one: a damaged archive, and no traceback."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 2
    content = b"a\0" if kind == tarfile.GNUTYPE_LONGNAME else b"\n\n"
    block = header.tobuf(tarfile.GNU_FORMAT) + content.ljust(512, b"\0")
    path = tmp_path / "chain.tar"
    path.write_bytes(block * 5_000 + bytes(1024))
    with pytest.raises(BadFile, match="damaged"):
        open_tar(str(path), index_folder=tmp_path / "index")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(members=_MEMBERS, form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
def test_index_agrees_with_tarfile(
    tmp_path: Path, members: list[tuple[str, bytes, str]], form: int
) -> None:
    """Any archive of long and strange names: same keys in byte order, same bytes as tarfile."""
    path = tmp_path / "any.tar"
    generate(path, members, form)
    source = open_tar(str(path))
    assert contents(source) == by_tarfile(path)
    keys = [file.key for file in source.list()]
    assert keys == sorted(keys, key=str.encode)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    members=st.lists(st.tuples(_NAMES, st.binary(max_size=600), st.sampled_from(["file", "big"])),
                     min_size=3, max_size=30),
    form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT]),
    nested=st.booleans(),
)  # fmt: skip
def test_walks_that_start_anywhere_join_to_the_same_index(
    tmp_path: Path, members: list[tuple[str, bytes, str]], form: int, nested: bool
) -> None:
    """Four walks at once find what one finds, also where a tar inside the tar leads them astray."""
    if form == tarfile.USTAR_FORMAT:
        members = [(f"m{n}", content, kind) for n, (_, content, kind) in enumerate(members)]
    if nested:
        generate(tmp_path / "inner.tar", members, form)
        inner = (tmp_path / "inner.tar").read_bytes()
        members = [*members[:2], ("inner.tar", inner, "file"), *members[2:]]
    path = tmp_path / "any.tar"
    generate(path, members, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tar_index, "_SEARCH_BYTES", 2048)
        patch.setattr(tar_index, "_NEAR_WINDOW", 1024)
        pieces = TarSource(InPieces(path))
    assert contents(pieces) == by_tarfile(path)


@pytest.mark.parametrize("archive", [LocalArchive, InPieces])
def test_global_headers_reach_across_walks(
    archive: type[LocalArchive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PAX header for all that follows counts wherever a walk began."""
    path = tmp_path / "global.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers={"mtime": "1234"}) as tar:
        for number in range(60):
            tar.addfile(info(f"{number:02d}", 1024), io.BytesIO(b"x" * 1024))
    monkeypatch.setattr(tar_index, "_SEARCH_BYTES", 4096)
    files = list(TarSource(archive(path)).list())
    assert len(files) == 60
    assert {file.mtime for file in files} == {datetime(1970, 1, 1, 0, 20, 34)}  # noqa: DTZ001


def test_names_are_those_tar_would_extract(tmp_path: Path) -> None:
    """Leading "./" and "/" go, the last of a name wins, also when it is a link."""
    path = tmp_path / "names.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in [("./a", b"1"), ("/b", b"2"), ("c//d", b"3"), ("a", b"last"),
                              ("gone", b"4"), ("../up", b"5"), ("caf\udce9", b"6")]:  # fmt: skip
            tar.addfile(info(name, len(content)), io.BytesIO(content))
        tar.addfile(info("gone", kind=tarfile.SYMTYPE, linkname="a"))
        tar.addfile(info("hard", kind=tarfile.LNKTYPE, linkname="a"))
        tar.addfile(info("pipe", kind=tarfile.FIFOTYPE))
    source = open_tar(str(path))
    assert contents(source) == {"a": b"last", "b": b"2", "c/d": b"3"}
    reasons = {problem.key: problem.reason for problem in source.problems()}
    assert reasons.pop("caf\\udce9") == "name is not UTF-8"
    assert reasons.pop("../up") == "name leads out of the archive"
    assert "symbolic link to a" in reasons.pop("gone")
    assert "hard link to a" in reasons.pop("hard")
    assert "no regular file" in reasons.pop("pipe")
    assert not reasons


def test_sparse_members_are_left_out(tmp_path: Path) -> None:
    """A file that GNU tar stored with holes is named with its reason, not read wrong."""
    sparse = tmp_path / "holes"
    with sparse.open("wb") as file:
        file.truncate(2**20)
        file.seek(2**19)
        file.write(b"x")
    path = tmp_path / "sparse.tar"
    assert os.system(f"tar -C {tmp_path} -S -cf {path} holes") == 0
    source = open_tar(str(path))
    assert list(source.list()) == []
    assert [(p.key, "sparse" in p.reason) for p in source.problems()] == [("holes", True)]


def test_second_time_reads_none_of_the_archive(tmp_path: Path) -> None:
    """The index is kept; it is made again when the archive has changed."""
    path = write_tar(tmp_path / "a.tar", [("x", b"1"), ("y", b"22")])
    index = tmp_path / "index"
    assert open_tar(str(path), index_folder=index).index.cost.requests > 0
    again = open_tar(str(path), index_folder=index)
    assert (again.index.cost.requests, again.index.cost.bytes) == (0, 0)
    assert contents(again) == {"x": b"1", "y": b"22"}
    write_tar(path, [("z", b"333")])
    os.utime(path, ns=(1, 1))
    changed = open_tar(str(path), index_folder=index)
    assert changed.index.cost.requests > 0
    assert contents(changed) == {"z": b"333"}
    assert len(list(index.iterdir())) == 1


def test_damaged_index_is_made_anew(tmp_path: Path) -> None:
    """A half-written or foreign index file is replaced."""
    path = write_tar(tmp_path / "a.tar", [("x", b"1")])
    index = tmp_path / "index"
    (index_file,) = [open_tar(str(path), index_folder=index).index.path]
    index_file.write_bytes(index_file.read_bytes()[:100])
    assert contents(open_tar(str(path), index_folder=index)) == {"x": b"1"}


@pytest.mark.parametrize("keep", [0, 100, 512, 700, 1024, 1536, 3000])
def test_truncated_archive(keep: int, tmp_path: Path) -> None:
    """Cut anywhere, also between two members, an archive is refused and leaves no index."""
    path = write_tar(tmp_path / "cut.tar", [("a", b"1" * 300), ("b", b"2" * 3000)])
    os.truncate(path, keep)
    with pytest.raises(BadFile, match="damaged or truncated"):
        open_tar(str(path), index_folder=tmp_path / "index")
    assert list((tmp_path / "index").iterdir()) == []


@pytest.mark.parametrize("member", [0, 1, 2])
@pytest.mark.parametrize("position", [0, 124, 150, 156, 400])
def test_a_damaged_header_is_no_end(member: int, position: int, tmp_path: Path) -> None:
    """One byte of any member's header flipped: refused, for the rest would seem removed."""
    path = write_tar(tmp_path / "a.tar", [(name, b"1") for name in "abc"])
    damaged = bytearray(path.read_bytes())
    damaged[member * 1024 + position] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(BadFile, match="damaged"):
        open_tar(str(path))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.lists(st.tuples(st.integers(0, 8191), st.integers(0, 255)), min_size=1))
def test_any_damage_is_a_clear_error(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    """Random bytes anywhere: our own error, or every member, read or named as one that cannot be.

    Names that stand in extended headers have no checksum, and may come out as others.
    """
    members = [("a", b"1" * 700), ("x" * 130, b"2"), ("ü" * 90, b"3" * 600)]
    path = write_tar(tmp_path / "damaged.tar", members, tarfile.PAX_FORMAT)
    damaged = bytearray(path.read_bytes())
    for position, value in changes:
        damaged[position % len(damaged)] = value
    path.write_bytes(damaged)
    try:
        source = open_tar(str(path))
        read = contents(source)
    except FramesiftError as error:
        assert "\n" not in str(error)  # noqa: PT017 (either outcome is right)
        return
    assert len(read) + len(list(source.problems())) == len(members)
    assert read.get("a", damaged[512:1212]) == damaged[512:1212]


def test_header_that_claims_gigabytes(tmp_path: Path) -> None:
    """An extended header of 8 GB is refused and not read into memory."""
    path = tmp_path / "bomb.tar"
    header = info("x", 8 * 2**30, kind=tarfile.XHDTYPE).tobuf(tarfile.GNU_FORMAT)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(9 * 2**30)  # sparse: takes no space
    with pytest.raises(BadFile, match="a header claims"):
        open_tar(str(path))


def test_archive_that_changes_while_read(tmp_path: Path) -> None:
    """Members of an archive that was replaced are not mixed up: a bad file that says so."""
    path = write_tar(tmp_path / "a.tar", [("x", b"1")])
    source = open_tar(str(path))
    write_tar(path, [("other", b"0000"), ("x", b"1")])
    os.utime(path, ns=(1, 1))
    with pytest.raises(BadFile, match="changed while it was read; scan again"):
        source.read("x")


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, None])
@pytest.mark.parametrize("size", [0, 1, 5 * 2**20])
def test_joined_archives_are_refused(size: int, form: int | None, tmp_path: Path) -> None:
    """Two archives written one after the other: refused, for tar would read the first alone.

    Whatever the second one's size, and also where its headers have no magic word (form None).
    """
    path = write_tar(tmp_path / "a.tar", [("x", b"1")])
    second = write_tar(tmp_path / "b.tar", [("y", b"2" * size)], form or tarfile.GNU_FORMAT)
    joined = second.read_bytes()
    if form is None:
        header = joined[:257] + bytes(255)
        checksum = sum(header[:148]) + 8 * ord(" ") + sum(header[156:])
        joined = header[:148] + b"%06o\0 " % checksum + header[156:] + joined[512:]
    path.write_bytes(path.read_bytes() + joined)
    with pytest.raises(BadFile, match="not several joined"):
        open_tar(str(path))


@pytest.mark.parametrize("padding", [b"", bytes(512), b"leftover" * 128, bytes(3 * 2**20)])
def test_what_fills_an_archive_up_is_no_archive(padding: bytes, tmp_path: Path) -> None:
    """Behind the end marker POSIX allows anything: zeros, and what was in a writer's buffer."""
    path = write_tar(tmp_path / "a.tar", [("x", b"1"), ("x/y", b"2")])
    path.write_bytes(path.read_bytes() + padding)
    assert [file.key for file in open_tar(str(path)).list()] == ["x", "x/y"]


def test_ranges_stay_within_their_member(tmp_path: Path) -> None:
    """read_range never shows the next member's bytes."""
    source = open_tar(str(write_tar(tmp_path / "a.tar", [("x", b"0123456789"), ("y", b"n")])))
    assert source.read_range("x", 2, 3) == b"234"
    assert source.read_range("x", 8, 5000) == b"89"
    assert source.read_range("x", 10, 1) == b""
    with pytest.raises(BadFile, match="is not in"):
        source.read("z")


def test_too_large_a_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on sizes holds for members too."""
    source = open_tar(str(write_tar(tmp_path / "a.tar", [("x", b"0123456789")])))
    monkeypatch.setattr("ingest.sources.tar_source.MAX_FILE_BYTES", 9)
    with pytest.raises(BadFile, match="has 10 bytes; at most 9 are read"):
        source.read("x")


def test_archive_without_times(tmp_path: Path) -> None:
    """Where every time is 0, the archive's identity tells that members may have changed."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(info("x", 1, mtime=0), io.BytesIO(b"1"))
    (file,) = open_tar(str(path)).list()
    assert getattr(file, "etag")  # noqa: B009 (a field to come)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "A.TAR.BZ2", "s3://b/x.tar.zst"])
def test_compressed_archives_are_refused(name: str) -> None:
    """A compressed archive cannot be read in parts: said before anything is opened."""
    with pytest.raises(InvalidInput, match="decompress it"):
        is_archive(name)


def test_what_is_a_tar() -> None:
    """The ending decides."""
    assert is_archive("s3://bucket/a.tar")
    assert is_archive("/x/A.TAR")
    assert not is_archive("/x/tar")


def test_missing_archive(tmp_path: Path) -> None:
    """No file there: said in one line."""
    with pytest.raises(StorageError, match=r"none.tar: cannot be read: No such file"):
        open_tar(str(tmp_path / "none.tar"))


@pytest.mark.wide
def test_sample_frames_read_as_from_a_folder(
    moto_server: S3Server, sample_root: Path, palette: ClassList, tmp_path: Path
) -> None:
    """Keys and class pixels are the same in a folder, its tar and its tar on S3."""
    path = folder_as_tar(sample_root, tmp_path / "sample.tar")
    bucket = moto_server.new_bucket("tars")
    moto_server.client().upload_file(str(path), bucket, "all/sample.tar")
    folder = LocalFolder(sample_root)
    options = SourceOptions(endpoint_url=moto_server.endpoint)
    keys = [file.key for file in folder.list()]
    expected = class_pixels(folder, palette)
    for uri in (str(path), f"s3://{bucket}/all/sample.tar"):
        source = open_tar(uri, options)
        assert sorted(keys) == [file.key for file in source.list()]
        assert class_pixels(source, palette) == expected
    assert len(expected) > 10


def test_archive_that_is_replaced_on_s3(moto_server: S3Server, tmp_path: Path) -> None:
    """Every read asks for the object that was indexed: no member of another one comes back."""
    bucket = moto_server.new_bucket("tars")
    options = SourceOptions(endpoint_url=moto_server.endpoint)
    # 416 is the status of a range beyond the end; boto3 reads the last one.
    for key in ("a.tar", "drive_416.tar", "odd//a.tar"):
        path = write_tar(tmp_path / "a.tar", [("x", b"1"), ("y", b"2")])
        moto_server.client().upload_file(str(path), bucket, key)
        source = open_tar(f"s3://{bucket}/{key}", options)
        assert source.read("x") == b"1"
        path = write_tar(tmp_path / "a.tar", [("y", b"3"), ("x", b"4")])
        moto_server.client().upload_file(str(path), bucket, key)
        for read in (source.read, lambda member, of=source: of.read_range(member, 0, 1)):
            with pytest.raises(BadFile, match="changed since it was listed; scan again"):
                read("x")


@pytest.mark.wide
def test_scans_give_the_same_rows_wherever_the_data_lies(
    moto_server: S3Server,
    sample_root: Path,
    tmp_path: Path,
    empty_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scan of folder, S3 prefix, tar and tar on S3 leaves the same keys and class pixels."""
    path = folder_as_tar(sample_root, tmp_path / "sample.tar")
    bucket = moto_server.new_bucket("scans")
    moto_server.put_folder(bucket, sample_root, "a2d2/")
    moto_server.client().upload_file(str(path), bucket, "sample.tar")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_server.endpoint)
    scans = []
    for number, uri in enumerate(
        [str(sample_root), f"s3://{bucket}/a2d2", str(path), f"s3://{bucket}/sample.tar"]
    ):
        shutil.copytree(empty_home, tmp_path / f"home{number}")
        home = Home.at(tmp_path / f"home{number}")
        source = Source(name="a2d2", uri=uri, platform="S3", cluster="c", datasource="a2d2")
        result = home.scan(add_source(home.records, source))
        assert (result.counts.frames > 10, result.counts.bad_files) == (True, 0)
        files = home.rows("SELECT fkey, filename, path, size FROM metaocean ORDER BY fkey")
        pixels = home.rows("SELECT * FROM lake.main.class_pixels ORDER BY fkey")
        scans.append((files, pixels))
    assert scans[1:] == scans[:1] * 3


@pytest.mark.ceph
def test_tar_on_ceph(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An index on the real gateway skips large members, serves threads, and notices a new object.

    The bytes are counted by a proxy on the line, not by the code under test.
    """
    server = ceph()
    server.sign_in(monkeypatch, tmp_path)
    bucket = server.new_bucket("tars")
    members = [(f"camera/{n:03d}.png", os.urandom(2 * 2**20)) for n in range(24)]
    members += [(f"label/{n:03d}.png", os.urandom(20_000)) for n in range(24)]
    path = write_tar(tmp_path / "a.tar", members)
    server.client().upload_file(str(path), bucket, "a.tar")
    uri, index = f"s3://{bucket}/a.tar", tmp_path / "index"
    with breaking_proxy(server.endpoint, lambda _: "") as proxy:
        options = SourceOptions(endpoint_url=proxy.endpoint)
        source = open_tar(uri, options, index)
        assert proxy.downstream < path.stat().st_size / 4
        assert source.index.cost.bytes <= proxy.downstream
        before = proxy.downstream
        again = open_tar(uri, options, index)
        assert again.index.cost.bytes == 0
        assert proxy.downstream - before < 2000
    with ThreadPoolExecutor(8) as pool:
        source = open_tar(uri, SourceOptions(endpoint_url=server.endpoint), index)
        assert list(pool.map(source.read, dict(members))) == list(dict(members).values())
    server.client().put_object(Bucket=bucket, Key="a.tar", Body=os.urandom(5000))
    with pytest.raises(BadFile, match="changed since it was listed; scan again"):
        source.read("label/000.png")
    with pytest.raises(BadFile, match="no tar archive, or is damaged"):
        open_tar(uri, SourceOptions(endpoint_url=server.endpoint), index)
    with pytest.raises(StorageError, match="no such object"):
        open_tar(f"s3://{bucket}/b.tar", SourceOptions(endpoint_url=server.endpoint))
