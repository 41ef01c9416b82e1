"""The store: one folder of artifacts, of which this module has the folder and the collections."""

import contextlib
import errno
import json
import os
import re
import shutil
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lshdup.base.atomic import PREFIX, SUFFIX, Folder, describe_obstacle, explained
from lshdup.base.params import DEFAULT_STORE, ShingleParams, SketchParams
from lshdup.base.system import hold, is_own, is_read_only, pread, pwrite
from lshdup.collection.collection import Collection
from lshdup.errors import RERUN, ArtifactError
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.sources.records import RecordFields
from lshdup.store import npz
from lshdup.store.collection_io import collection_arrays, have_equal_lists, read_collection
from lshdup.store.npz import damage_explained, refuse_if

#: The first line of a store's .gitignore, by which it is known, and the whole of it.
_MARK = "# Made by lshdup."
_MARK_FILE = f"{_MARK}\n*\n".encode()

#: The file by which programs for backups know a folder of a cache (https://bford.info/cachedir/).
_CACHE_TAG = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# lshdup made this folder and makes it again from the documents.\n"
)

#: Names of the files of a store beside its artifacts.
_MARK_NAME, _TAG_NAME, _LOCK_NAME = ".gitignore", "CACHEDIR.TAG", ".lock"

#: What a killed run of version 1.1.0 left behind.
_FORMER = (".journal-pairs", ".journal-clusters")
_MANIFEST = "manifest.json"
_FILES = (_MARK_NAME, _TAG_NAME, _LOCK_NAME, _MANIFEST)

#: The folder of the segments that are no artifact of the current run; and of those that programs
#: have added.
MEMO, ADDED = "memo", "added"

#: The names of its files, and the kinds of artifacts that they are.
SEGMENT = re.compile(r"[0-9]{8}\.npz")
_SEGMENTS = ("segment", "signatures", "shingles", "bytes")

#: The artifacts of runs that leave those of other runs as they are.
_ASIDE = ("passages", "bytes")

#: Bytes that the memo may have, unless another limit is set.
MEMO_BYTES = 4 << 30

#: Segments that it may have: each run looks into each of them, which takes milliseconds.
_MOST_SEGMENTS = 256

#: Characters of a path that a system may open.
_LONGEST_PATH = 4096


def nearest_store() -> Path:
    """Return the store of the current folder, else that of the nearest folder above.

    Without any, return the one that a first run makes here. A store above that another user made
    is ignored: its lists would be the word of a stranger. It may be a link: see `refuse_link`.
    """
    for level, folder in enumerate([Path.cwd(), *Path.cwd().parents]):
        with contextlib.suppress(OSError):
            store = Path("../" * level) / DEFAULT_STORE
            is_trusted = not level or is_own(store.lstat())
            if is_trusted and Store(store).is_ours():
                return store
        if folder.is_mount():
            break
    return Path(DEFAULT_STORE)


def refuse_link(store: Path) -> None:
    """Raise ArtifactError if a store that was found, and not typed, is a link."""
    if store.is_symlink():
        message = f"the store {store} is a link to {store.readlink()}"
        raise ArtifactError(
            message, f"to use that folder, type --store {store}; or remove the link"
        )


class _Loaded(NamedTuple):
    """A collection that an artifact holds. stamp : of the file, whose changes it tells."""

    stamp: tuple[int, ...]
    is_verified: bool
    collection: Collection


class Store:
    """A folder with at most one artifact of each kind: `shingles.npz`, `signatures.npz`,
    `bands.npz`, `pairs.npz`, `clusters.npz`, `passages.npz`, `bytes.npz`; a `memo` of what other
    runs have made; a `manifest.json` that names what the last run with DOCS has made; and the
    `.lock` of the run that writes.

    secret : the hash key, if one was set; artifacts hold its name only.
    wait : seconds to wait for another run that writes.
    most : bytes that the memo may have.
    """

    def __init__(
        self, folder: Path, secret: bytes = b"", *, wait: float = 0.0, most: int = MEMO_BYTES
    ) -> None:
        self.folder = folder
        self._secret, self._wait, self._most = secret, wait, most
        self._loaded: dict[str, _Loaded] = {}
        self.is_held = False  #: whether this process is the one that writes

    def path(self, kind: str) -> Path:
        """Return the path of an artifact."""
        return self.folder / f"{kind}.npz"

    def make_writable(self) -> None:
        """Prove before the work that its result can be written. Make the folder if need be."""
        hint = "name another with --store DIR, or use --no-store"
        with explained(f"the store {self.folder} cannot be written", hint):
            is_new = not self.folder.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self.is_ours():
                folder = Folder(self.folder)
                if not all(_is_begun(folder, name) for name in folder.names()):
                    message = (
                        f"the folder {self.folder} holds other files and is no store of lshdup"
                    )
                    raise ArtifactError(message, "name a new folder with --store DIR")
                with folder.replace(_MARK_NAME) as file:
                    file.write(_MARK_FILE)
                if is_new:  # A folder that was there may be in a backup for another reason.
                    with folder.replace(_TAG_NAME) as file:
                        file.write(_CACHE_TAG)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                cause = errno.EROFS if is_read_only(self.folder) else errno.EACCES
                raise OSError(cause, os.strerror(cause))

    def is_ours(self) -> bool:
        """Return whether lshdup made this folder; it overwrites files in no other."""
        try:
            with Folder(self.folder).open(_MARK_NAME) as mark:
                return mark.read(len(_MARK)) == _MARK.encode()
        except OSError:
            return False

    def refuse_obstacles(self, *below: str) -> None:
        """Raise ArtifactError if something else is where a file or a folder of the store belongs.

        Such a link could lead to a document. It is not followed in any case; this names it before
        the work.

        below : names of folders in the store, each in the one before, that are looked at.
        """
        with contextlib.suppress(OSError):
            folder = Folder(self.folder, *below)
            for name in folder.names():
                is_file = name.endswith(".npz") or name in _FILES
                if not is_file and (below or name not in (MEMO, ADDED)):
                    continue  # such as a temporary file of another run, or of a killed one
                with contextlib.suppress(FileNotFoundError):  # Another run has removed it.
                    path = folder.path / name
                    if obstacle := describe_obstacle(path.lstat(), folder=not is_file):
                        what = "file" if is_file else "folder"
                        message = f"{path} is {obstacle}, where a {what} of lshdup belongs"
                        hint = "remove it, or name another store with --store DIR"
                        raise ArtifactError(message, hint)
                    if not is_file:
                        self.refuse_obstacles(*below, name)

    def size(self, *below: str) -> int:
        """Return how many bytes the files of the store have, or those of a folder in it."""
        size = 0
        with contextlib.suppress(OSError):
            size = Folder(self.folder, *below).size()
        return size if below else size + self.size(MEMO) + self.size(ADDED)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only run that writes, where there are locks. Remove files of killed runs.

        Readers need no lock: they find each artifact whole, the old or the new one, and every
        artifact says which documents it is of. The system releases a lock however the process
        ends. The lock file holds the number of the process, for the message. It is never removed: a
        run that has just opened it would hold a lock that no other run sees.

        Nothing is done within such a block. Raises ArtifactError if another run writes, and goes on
        to do so for the seconds to wait, or if the folder cannot be written.
        """
        if self.is_held:
            yield
            return
        self.make_writable()
        until = time.monotonic() + self._wait
        with explained(f"{self.folder / _LOCK_NAME} cannot be written"):
            descriptor = Folder(self.folder).open_lock(_LOCK_NAME)
        try:
            while True:
                try:
                    hold(descriptor)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise self._describe_holder(descriptor) from None
                time.sleep(0.05)
            with contextlib.suppress(OSError):  # A full disk costs the number in a message.
                os.ftruncate(descriptor, pwrite(descriptor, b"%d\n" % os.getpid(), 0))
            Folder(self.folder).remove_temporary_files()
            for name in _FORMER:
                if (former := self.folder / name).is_dir():  # `rmtree` waits for a pipe.
                    shutil.rmtree(former, ignore_errors=True)  # It follows no link.
            self.is_held = True
            try:
                yield
            finally:
                self.is_held = False
        finally:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _describe_holder(self, descriptor: int) -> ArtifactError:
        """Return the error that another run writes. descriptor : of the lock file."""
        time.sleep(0.01)  # The other run may have begun just now, without its number.
        number = pread(descriptor, 20, 0).partition(b"\n")[0].decode("ascii", "replace")
        holder = f" (process {number})" if number.isdecimal() else ""
        message = f"another lshdup run{holder} is writing to {self.folder}"
        hint = "wait until it is done (LSHDUP_WAIT=SECONDS), or use --store DIR or --no-store"
        return ArtifactError(message, hint)

    def remove_begun(self) -> None:
        """Remove a store that this run has made if it holds nothing: it would hide one above."""
        with contextlib.suppress(OSError):
            names = {each.name for each in self.folder.iterdir()}
            if self.is_held and names.issubset(_FILES):
                shutil.rmtree(self.folder)

    # --- the manifest -----------------------------------------------------------------------------

    def _read_manifest(self) -> dict[str, Any]:
        """Return what the manifest says; nothing if it is missing or damaged."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            with Folder(self.folder).open(_MANIFEST) as file:
                manifest = json.loads(file.read())
            if isinstance(manifest, dict) and manifest.get("format") == npz.FORMAT_VERSION:
                return manifest
        return {}

    def _write_manifest(self, **values: Any) -> None:
        """Write values of the manifest; the others stay. Raises ArtifactError."""
        before = self._read_manifest()
        manifest = {"format": npz.FORMAT_VERSION, **before, **values}
        if manifest == before:
            return
        with (
            explained(f"{self.folder / _MANIFEST} cannot be written"),
            Folder(self.folder).replace(_MANIFEST) as file,
        ):
            file.write(json.dumps(manifest, indent=1).encode("ascii") + b"\n")

    def current(self) -> str:
        """Return which artifact commands without DOCS continue with: "shingles" or "signatures"."""
        is_named = self._read_manifest().get("current") == "shingles"
        named, other = ("shingles", "signatures") if is_named else ("signatures", "shingles")
        is_there = self._find(named).exists() or not self.path(other).exists()
        return named if is_there else other

    def is_last(self, kind: str) -> bool:
        """Return whether the last run with DOCS was one for "passages", or of equal "bytes"."""
        return self._read_manifest().get(kind) is True

    def make_current(self, kind: str, collection: Collection) -> None:
        """Name the artifact that commands without DOCS continue with, or that of passages or equal
        bytes.
        """
        if kind in _ASIDE:
            self._write_manifest(**{each: each == kind for each in _ASIDE})
            return
        documents = collection.documents
        docs = [os.fsdecode(name) for name in documents.docs]
        corpus = collection.unfiltered_identity if kind == "shingles" else collection.identity
        self._write_manifest(
            current=kind, corpus=corpus, documents=len(documents), docs=docs,
            base=self.base(documents.home), **dict.fromkeys(_ASIDE, False),
        )  # fmt: skip

    # --- the memo ---------------------------------------------------------------------------------

    def segments(self) -> list[str]:
        """Return the names of the segments in the memo, the newest first."""
        with contextlib.suppress(OSError):
            names = filter(SEGMENT.fullmatch, Folder(self.folder, MEMO).names())
            return [f"{MEMO}/{name[:8]}" for name in sorted(names, reverse=True)]
        return []

    def next_segment(self) -> str:
        """Return the name of the next segment."""
        last = next(iter(self.segments()), "/0").rpartition("/")[2]
        return f"{MEMO}/{int(last) + 1:08}"

    def _keep(self, kind: str) -> None:
        """Move an artifact into the memo. Raises OSError."""
        name = self.path(self.next_segment()).name
        (self.folder / MEMO).mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            Folder(self.folder).move(self.path(kind).name, Folder(self.folder, MEMO), name)
        self._loaded.pop(kind, None)

    def forget(self, used: Sequence[str]) -> None:
        """Remove the segments that were not used for longest, while they are too large or too many.

        used : the segments that this run has used, which are the last ones to go.
        """
        there = self.segments()
        before = self._read_manifest().get("memo")
        before = [each for each in before if each in there] if isinstance(before, list) else []
        new = [each for each in reversed(there) if each not in before]
        order = [each for each in before + new if each not in used]
        order += [each for each in used if each in there]
        while len(order) > _MOST_SEGMENTS or (order and self.size(MEMO) > self._most):
            self.drop(order.pop(0))
        self._write_manifest(memo=order)

    def drop(self, kind: str, *, keep: bool = False) -> None:
        """Remove an artifact that cannot be used. keep : move it into the memo instead."""
        self._loaded.pop(kind, None)
        path = self.path(kind)
        with contextlib.suppress(OSError):
            if keep:
                self._keep(kind)
                return
            Folder(self.folder, *path.relative_to(self.folder).parts[:-1])  # follows no link
            path.unlink()
            if path.parent != self.folder:  # as far as it is empty
                path.parent.rmdir()

    # --- collections ------------------------------------------------------------------------------

    def save_collection(
        self,
        kind: str,
        collection: Collection,
        beside: Mapping[str, Any] | None = None,
        *,
        keep_old: bool = False,
    ) -> None:
        """Save the artifact of a collection, unless the file says the same.

        beside : arrays of the artifact that hold more than the collection, and values of its
            header; it is always written then.
        keep_old : whether the file that it replaces is moved into the memo.
        """
        path = self.path(kind)
        if path.parent != self.folder:
            kind = "segment"
            path.parent.mkdir(exist_ok=True)
        if kind == "shingles" and collection.shingle_filter is not None:
            # The next run may apply another filter.
            collection = collection.before_filter
        header = self._describe_collection(kind, collection)
        if beside is None and path.exists():
            with contextlib.suppress(ArtifactError):
                old = self.load_collection(kind, here=True, verify=False)
                is_same = old is not None and self._describe_collection(kind, old) == header
                if old is not None and is_same and have_equal_lists(old, collection, kind):
                    return
        self._loaded.pop(kind, None)
        arrays = collection_arrays(collection, kind)
        for name, value in (beside or {}).items():
            (arrays if isinstance(value, np.ndarray) else header)[name] = value
        npz.save(
            path, kind, header, arrays,
            before=(lambda: self._keep(kind)) if keep_old else None,
        )  # fmt: skip

    def _describe_collection(self, kind: str, collection: Collection) -> dict[str, Any]:
        """Return the header of an artifact of a collection."""
        documents, shingle_filter = collection.documents, collection.shingle_filter
        sketch = collection.sketch if kind in ("signatures", "segment") else None
        fields, home = documents.record_fields, documents.home
        header = self.describe(collection.shingle, sketch, fields, home, shingle_filter)
        header["corpus"] = collection.identity
        header["docs"] = [os.fsdecode(name) for name in documents.docs]
        header["links"] = documents.has_links
        if shingle_filter is not None:
            header["whole"] = collection.unfiltered_identity
        return header

    def describe(
        self,
        shingle: ShingleParams,
        sketch: SketchParams | None,
        fields: RecordFields | None,
        home: bytes,
        shingle_filter: ShingleFilter | None,
    ) -> dict[str, Any]:
        """Return the part of a header that says how an artifact was made and where names start."""
        header: dict[str, Any] = {
            "shingle": shingle.to_json(),
            "unicode": unicodedata.unidata_version,
            "base": self.base(home),
        }
        if shingle_filter is not None:
            header["common"] = shingle_filter.to_json()
        if fields is not None:
            header["rows"] = asdict(fields)
        return header if sketch is None else header | {"sketch": sketch.to_json()}

    def base(self, home: bytes) -> str:
        """Return the folder that names start from, as seen from the store."""
        return os.path.relpath(os.fsdecode(home) or Path.cwd(), self.folder.resolve())

    def load_collection(
        self, kind: str, *, here: bool = False, verify: bool = True
    ) -> Collection | None:
        """Load shingles.npz, signatures.npz or a segment of the memo, the former once a run.
        Return None if it is missing.

        Raises ArtifactError if the artifact is damaged.

        here : return None too if its names do not start from the current folder.
        verify : whether every byte is verified.
        """
        path, loaded = self._find(kind), self._loaded.get(kind)
        stamp = self.stamp(path)
        if loaded is not None and loaded.stamp == stamp and loaded.is_verified >= verify:
            return None if here and loaded.collection.documents.home else loaded.collection
        # A query looks up every shingle in the filter.
        kinds = (kind,) if path.parent == self.folder else _SEGMENTS
        artifact = npz.load(path, kinds, RERUN, verify=verify, always=("template", "common"))
        if artifact is None:
            return None
        with damage_explained(path, RERUN):
            made, present = artifact.header["unicode"], unicodedata.unidata_version
            if made != present:
                message = f"{path} was made with Unicode {made}; this Python has {present}"
                raise ArtifactError(message, RERUN)
            base = artifact.header["base"]
            cannot_be = "\0" in base or len(base) > _LONGEST_PATH
            refuse_if(cannot_be, "its names start from a folder that cannot be")
            home = Path(os.path.normpath(self.folder.resolve() / base))
            at_home = home == Path.cwd()
            if here and not at_home:
                return None
            collection = read_collection(
                artifact, b"" if at_home else os.fsencode(home), verify=verify, folder=self.folder
            )
            collection = replace(collection, shingle=collection.shingle.with_secret(self._secret))
            if not kind.startswith((MEMO, ADDED)):  # Each holds a file descriptor.
                self._loaded[kind] = _Loaded(stamp, verify, collection)
            return collection

    def stamp(self, path: Path) -> tuple[int, ...]:
        """Return numbers that differ for a file that was replaced; none if it is not there."""
        with contextlib.suppress(OSError):
            status = path.lstat()
            return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return ()

    def _find(self, kind: str) -> Path:
        """Return where an artifact is: the current one in the memo, if the run that had moved it
        there was killed before it had written its own.
        """
        path, manifest = self.path(kind), self._read_manifest()
        if path.exists() or path.is_symlink() or kind != manifest.get("current"):
            return path
        for name in self.segments():
            with contextlib.suppress(ArtifactError):
                held = npz.load(self.path(name), (kind,), RERUN, verify=False)
                if held is not None and held.header.get("corpus") == manifest.get("corpus"):
                    return self.path(name)
        return path


def _is_begun(folder: Folder, name: str) -> bool:
    """Return whether a file is the mark of a store, perhaps cut short by a kill."""
    if name.startswith(PREFIX) and name.endswith(SUFFIX):
        return True  # of a run that makes the same store, or was killed there
    if name != _MARK_NAME:
        return False
    with folder.open(name) as mark:
        return _MARK_FILE.startswith(mark.read(len(_MARK_FILE) + 1))
