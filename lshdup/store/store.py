"""The store: collections and band tables as artifacts in one folder. Called by workspace.py and below, which know when to use them."""

import contextlib
import errno
import hashlib
import json
import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.records import RecordFields
from lshdup.errors import ArtifactError, ParameterError
from lshdup.lsh import band_plan
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import Buckets
from lshdup.matching.pairs import Pairs
from lshdup.matching.results import ClustersFound, Index, PairsFound, StoredPairs
from lshdup.params import BandParams, ClusterParams, PairParams, ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.store import npz
from lshdup.store.collection_io import collection_arrays, read_collection, would_save_the_same
from lshdup.store.lock import locked
from lshdup.store.members import refuse_if
from lshdup.store.npz import Array
from lshdup.utils.atomic import remove_temporary_files

#: The first line of a store's .gitignore, by which it is known, and the whole of it.
_MARK = "# Made by lshdup."
_MARK_FILE = f"{_MARK}\n*\n".encode()

#: More verified pairs than this (64 MB) are not kept for the next run.
_MOST_PAIRS = 1 << 22


class Store:
    """One folder with at most one `shingles.npz`, `signatures.npz`, `bands.npz`, `pairs.npz` and `clusters.npz`; and with the `.lock` of
    who writes it.
    """

    def __init__(self, folder: Path, secret: bytes = b"") -> None:
        self.folder = folder
        self._secret = secret  #: the hash key, if one was given: artifacts know its name only
        self.is_held = False  #: whether this process is the one that writes

    def path(self, kind: str) -> Path:
        return self.folder / f"{kind}.npz"

    def make_writable(self) -> None:
        """Prove before the work that its result can be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self.is_ours():
                if any(not self._is_begun(entry) for entry in self.folder.iterdir()):
                    message = (
                        f"the folder {self.folder} holds other files and is no store of lshdup"
                    )
                    raise ArtifactError(message, "name a new folder with --store DIR")
                # Not emptied before: another run may be doing the same, and a third must not find it empty.
                descriptor = os.open(self.folder / ".gitignore", os.O_WRONLY | os.O_CREAT, 0o666)
                try:
                    os.write(descriptor, _MARK_FILE)
                finally:
                    os.close(descriptor)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                cause = (
                    errno.EROFS if os.statvfs(self.folder).f_flag & os.ST_RDONLY else errno.EACCES
                )
                raise OSError(cause, os.strerror(cause))
        except OSError as error:
            message = f"the store {self.folder} cannot be written: {error.strerror}"
            raise ArtifactError(
                message, "name another with --store DIR, or use --no-store"
            ) from None

    def is_ours(self) -> bool:
        """Whether lshdup made this folder: only there it overwrites files."""
        mark = self.folder / ".gitignore"
        return mark.is_file() and mark.read_text("utf-8", "replace").startswith(_MARK)

    @staticmethod
    def _is_begun(entry: Path) -> bool:
        """Whether a file is the mark of a store as far as it got: the disk was full, or the run was killed."""
        return (
            entry.name == ".gitignore"
            and entry.is_file()
            and _MARK_FILE.startswith(entry.read_bytes())
        )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only run that writes; raises ArtifactError if another is, or if nothing can be written.

        What runs that were killed have left is removed. Readers need no lock: they find each artifact as it was or as it is, whole, and
        every one says which documents it is of.
        """
        self.make_writable()
        with locked(self.folder / ".lock", self.folder) as held:
            if held:  # Without a lock, a temporary file may belong to another run.
                remove_temporary_files(self.folder)
            self.is_held = True
            try:
                yield
            finally:
                self.is_held = False

    def modified(self, kind: str) -> int:
        """When an artifact was saved last, or found to be up to date, in nanoseconds; 0 if it is not there."""
        try:
            return self.path(kind).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def drop(self, kind: str) -> None:
        """Remove an artifact that cannot be used."""
        self.path(kind).unlink(missing_ok=True)

    def save_collection(self, kind: str, collection: Collection) -> None:
        if (
            kind == "shingles" and collection.unfiltered is not None
        ):  # keeps whole sets: what is removed may be another part of them next time
            collection = collection.before_filter
        if self._is_saved(kind, collection):
            self.path(
                kind
            ).touch()  # the times of artifacts tell which collection the last run was of
            return
        arrays = collection_arrays(collection, kind)
        header = self._header(collection, with_sketch=kind == "signatures")
        if collection.unfiltered is not None:
            header["whole"] = collection.unfiltered_identity
        npz.save(self.path(kind), kind, header, arrays)

    def _is_saved(self, kind: str, collection: Collection) -> bool:
        """Return whether an artifact holds this collection already."""
        try:
            old = self.load_collection(kind, here=True, verify=False)
            return old is not None and would_save_the_same(old, collection)
        except ArtifactError:
            return False

    def _header(self, collection: Collection, *, with_sketch: bool) -> dict[str, Any]:
        documents = collection.documents
        sketch = collection.sketch if with_sketch else None
        header = self.describe_parameters(
            collection.shingle,
            sketch,
            documents.record_fields,
            documents.home,
            collection.shingle_filter,
        )
        return header | {"corpus": collection.identity}

    def describe_parameters(
        self,
        shingle: ShingleParams,
        sketch: SketchParams | None,
        fields: RecordFields | None,
        home: bytes = b"",
        shingle_filter: ShingleFilter | None = None,
    ) -> dict[str, Any]:
        """What the header of a file says of how it was made, and from where its names start."""
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

    def base(self, home: bytes = b"") -> str:
        """From where names start, as seen from the store."""
        return os.path.relpath(os.fsdecode(home) or Path.cwd(), self.folder.resolve())

    def load_collection(
        self, kind: str, *, here: bool = False, verify: bool = True
    ) -> Collection | None:
        """shingles.npz or signatures.npz. here : only if its names are meant from the current folder."""
        remedy = f"run `lshdup {'shingle' if kind == 'shingles' else kind} DOCS`"
        path = self.path(kind)
        # A query looks every shingle up among those that are removed.
        artifact = npz.load(path, kind, remedy, verify=verify, always=("template", "common"))
        if artifact is None:
            return None
        try:
            if artifact.header["unicode"] != unicodedata.unidata_version:
                made, here_now = artifact.header["unicode"], unicodedata.unidata_version
                message = f"{path} was made with Unicode {made}; this Python has {here_now}"
                raise ArtifactError(message, remedy)
            refuse_if(
                "\0" in artifact.header["base"], "its names start from a folder that cannot be"
            )
            home = Path(os.path.normpath(self.folder.resolve() / artifact.header["base"]))
            at_home = home == Path.cwd()
            if here and not at_home:
                return None
            collection = read_collection(
                artifact, b"" if at_home else os.fsencode(home), verify=verify, folder=self.folder
            )
            return replace(collection, shingle=collection.shingle.with_secret(self._secret))
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            message = f"{path} is damaged ({error})"
            raise ArtifactError(message, remedy) from None

    def save_bands(self, collection: Collection, made: Index, params: BandParams) -> None:
        header = self._header(collection, with_sketch=True) | {"bands": params.to_json()}
        # No times of files: a table stays the same while the sets are, and so it must not tell which files were touched.
        names = collection.documents.names
        arrays: dict[str, Array] = {"names_blob": names.blob, "names_offsets": names.offsets}
        arrays |= {"keys": made.table.keys, "order": made.table.order, "firsts": made.duplicate_of}
        npz.save(self.path("bands"), "bands", header, arrays)

    def stored_threshold(self) -> float | None:
        """The threshold of the stored band table, of whatever documents."""
        artifact = npz.load(self.path("bands"), "bands", "run `lshdup index`", verify=False)
        try:
            return (
                None
                if artifact is None
                else BandParams.from_json(artifact.header["bands"]).threshold
            )
        except (KeyError, ParameterError) as error:
            message = f"{self.path('bands')} is damaged ({error})"
            raise ArtifactError(message, "run `lshdup index`") from None

    def load_bands(
        self, collection: Collection, verify: bool = True
    ) -> tuple[Index, BandParams] | None:
        """bands.npz, if it was made from this collection."""
        path = self.path("bands")
        remedy = "run `lshdup index`"
        try:
            artifact = npz.load(
                path, "bands", remedy, verify=verify, always=("firsts",)
            )  # a query looks at all of them
            if artifact is None:
                return None
            assert collection.sketch is not None
            if (
                artifact.header["corpus"] != collection.identity
                or artifact.header["sketch"] != collection.sketch.to_json()
            ):
                return None
            params = BandParams.from_json(artifact.header["bands"])
            plan = band_plan.plan_bands(collection.sketch.perms, params)
            keys, order, duplicate_of = (
                artifact.arrays["keys"],
                artifact.arrays["order"],
                artifact.arrays["firsts"],
            )
            n = len(collection.documents)
            refuse_if(
                keys.shape != (plan.bands, n)
                or duplicate_of.shape != (n,)
                or len(order) != plan.bands
                or order.shape[1] > n,
                "shapes do not fit",
            )
            refuse_if(
                keys.dtype != np.uint64
                or order.dtype != np.uint32
                or duplicate_of.dtype != np.int64,
                "types do not fit",
            )
            refuse_if(
                n
                and (
                    duplicate_of.min() < 0
                    or duplicate_of.max() >= n
                    or (verify and order.max(initial=0) >= n)
                ),
                "it names documents that are not there",
            )
            table = BandTable(keys, order)
            refuse_if(verify and not table.is_in_order(), "its buckets are not in order")
            return Index(plan, table, duplicate_of), params
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            message = f"{path} is damaged ({error})"
            raise ArtifactError(message, remedy) from None

    def save_pairs(
        self,
        collection: Collection,
        made: Index,
        params: BandParams,
        asked: PairParams,
        found: PairsFound,
    ) -> None:
        """The verified pairs of first copies, so that the next run over the same documents need read none of them."""
        pairs = found.pairs
        if len(pairs) <= _MOST_PAIRS:
            arrays: dict[str, Array] = {
                "left": pairs.left,
                "right": pairs.right,
                "similarity": pairs.similarity,
            }
            header = self._pairs_header(collection, made, params, asked)
            header = header | {
                "candidates": found.candidates,
                "buckets": _buckets_to_json(found.buckets),
            }
            npz.save(self.path("pairs"), "pairs", header, arrays)

    def load_pairs(self, collection: Collection) -> StoredPairs | None:
        """pairs.npz, if it was made from this collection; damaged, it is as good as not there."""
        try:
            artifact = npz.load(self.path("pairs"), "pairs", "run `lshdup pairs` again")
            if artifact is None:
                return None
            header = artifact.header
            if any(
                header.get(key) != value
                for key, value in self._header(collection, with_sketch=True).items()
            ):
                return None
            left, right, similarity = (
                artifact.arrays[name] for name in ("left", "right", "similarity")
            )
            refuse_if(
                left.dtype != np.uint32
                or right.dtype != np.uint32
                or similarity.dtype != np.float64,
                "types do not fit",
            )
            refuse_if(
                left.ndim != 1 or not left.shape == right.shape == similarity.shape,
                "columns of different length",
            )
            n = len(collection.documents)
            refuse_if(len(left) and right.max() >= n, "it names documents that are not there")
            params, asked = (
                BandParams.from_json(header["bands"]),
                PairParams.from_json(header["pairs"]),
            )
            refuse_if(
                not (left < right).all()
                or not ((similarity >= params.threshold) & (similarity <= 1)).all(),
                "they are no pairs",
            )
            candidates, buckets = header["candidates"], _buckets_from_json(header["buckets"])
            planned = header["planned_bands"], header["planned_rows"]
            counts = (candidates, *planned)
            refuse_if(
                any(type(count) is not int or count < 0 for count in counts)
                or not _are_counts(buckets, n),
                "counts are none",
            )
            assert collection.sketch is not None
            refuse_if(
                not 0 < planned[0] * planned[1] <= collection.sketch.perms, "bands that do not fit"
            )
            return StoredPairs(
                PairsFound(Pairs.of(left, right, similarity), candidates, buckets),
                params,
                asked,
                *planned,
            )
        except (ArtifactError, KeyError, TypeError, ValueError, ParameterError):
            return None

    def save_groups(
        self,
        collection: Collection,
        made: Index,
        params: BandParams,
        asked: ClusterParams,
        preference: NDArray[np.int64],
        found: ClustersFound,
    ) -> None:
        """The groups of a run, so that the next one over the same documents need read none of them: 12 bytes a document."""
        representative = found.groups.representative.astype(np.uint32)  # -1 becomes 2^32 - 1
        header = self._groups_header(collection, made, params, asked, preference)
        header = header | {"buckets": _buckets_to_json(found.buckets)}
        npz.save(
            self.path("clusters"),
            "clusters",
            header,
            {"representative": representative, "similarity": found.groups.similarity},
        )

    def load_groups(
        self,
        collection: Collection,
        made: Index,
        params: BandParams,
        asked: ClusterParams,
        preference: NDArray[np.int64] | None,
    ) -> ClustersFound | None:
        """clusters.npz, if it was made from this collection and table with these parameters and preferences; damaged, it is as good as
        not there. preference : None: whichever it was.
        """
        try:
            artifact = npz.load(self.path("clusters"), "clusters", "run `lshdup clusters` again")
            if artifact is None:
                return None
            wanted = self._groups_header(collection, made, params, asked, preference)
            if any(artifact.header.get(key) != value for key, value in wanted.items()):
                return None
            stored, similarity = artifact.arrays["representative"], artifact.arrays["similarity"]
            n = len(collection.documents)
            refuse_if(
                stored.dtype != np.uint32 or similarity.dtype != np.float64, "types do not fit"
            )
            refuse_if(not stored.shape == similarity.shape == (n,), "columns of different length")
            representative = np.where(stored == 0xFFFFFFFF, -1, stored.astype(np.int64))
            compared = collection.sizes > 0
            own = representative[compared]
            refuse_if(
                not np.array_equal(representative >= 0, compared) or own.max(initial=-1) >= n,
                "not those documents",
            )
            refuse_if(
                not np.array_equal(representative[own], own),
                "what represents others does not represent itself",
            )
            refuse_if(
                not ((similarity[compared] >= 0) & (similarity[compared] <= 1)).all(),
                "similarities are none",
            )
            buckets = _buckets_from_json(artifact.header["buckets"])
            refuse_if(not _are_counts(buckets, n), "counts are none")
            from lshdup.matching.clusters import (
                Groups,
            )  # here, because a query waits for every import

            return ClustersFound(
                Groups(representative, similarity), made.duplicate_of, buckets=buckets
            )
        except (ArtifactError, KeyError, TypeError, ValueError, IndexError):
            return None

    def last_grouping(self, collection: Collection) -> tuple[BandParams, ClusterParams] | None:
        """How the last `clusters` grouped these documents; None if it grouped others, or if an index has been made since."""
        if self.modified("clusters") < self.modified("bands"):
            return None
        try:
            artifact = npz.load(
                self.path("clusters"), "clusters", "run `lshdup clusters` again", verify=False
            )
            if artifact is None or artifact.header["corpus"] != collection.identity:
                return None
            return BandParams.from_json(artifact.header["bands"]), ClusterParams.from_json(
                artifact.header["clusters"]
            )
        except (ArtifactError, KeyError, TypeError, ValueError):
            return None

    def touch(self, kind: str, when: int | None = None) -> None:
        """An artifact is what the last run would have saved: the times of artifacts tell which was that. when : 0: it is not any more."""
        with contextlib.suppress(
            OSError
        ):  # of a store that may only be read nothing is newer either
            if when is None:
                os.utime(self.path(kind))
            else:
                os.utime(self.path(kind), ns=(when, when))

    def _groups_header(
        self,
        collection: Collection,
        made: Index,
        params: BandParams,
        asked: ClusterParams,
        preference: NDArray[np.int64] | None,
    ) -> dict[str, Any]:
        header = self._made_header(collection, made, params) | {
            "clusters": json.loads(json.dumps(asked.to_json()))
        }
        if preference is None:
            return header
        # The order itself, because it may depend on what is no part of a collection's id: times of files, and how they were named.
        digest = hashlib.blake2b(
            np.ascontiguousarray(preference).view(np.uint8).data, digest_size=16
        ).hexdigest()
        return header | {"preference": digest}

    def _made_header(
        self, collection: Collection, made: Index, params: BandParams
    ) -> dict[str, Any]:
        plan = {"planned_bands": made.plan.bands, "planned_rows": made.plan.rows}
        return self._header(collection, with_sketch=True) | {"bands": params.to_json()} | plan

    def _pairs_header(
        self, collection: Collection, made: Index, params: BandParams, asked: PairParams
    ) -> dict[str, Any]:
        return self._made_header(collection, made, params) | {"pairs": asked.to_json()}


def _buckets_to_json(buckets: Buckets) -> dict[str, int]:
    """Return the counts under the names that format 3 of the artifacts has for them."""
    counts = asdict(buckets)
    return counts | {"left_out": counts.pop("skipped")}


def _buckets_from_json(counts: Mapping[str, int]) -> Buckets:
    """Return the counts of `_buckets_to_json`. Raise TypeError or KeyError if one is missing."""
    named = dict(counts)
    return Buckets(skipped=named.pop("left_out"), **named)


def _are_counts(buckets: Buckets, documents: int) -> bool:
    return all(
        type(count) is int and count >= 0 for count in asdict(buckets).values()
    ) and buckets.example < max(documents, 1)
