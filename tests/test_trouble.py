"""What the system refuses in the middle of a run: it is said, or done without."""

import errno
import json
import os
import sys
import types
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from lshdup.base import atomic, mbox, system
from lshdup.base.atomic import PREFIX, SUFFIX
from lshdup.base.compression import NoRoomError
from lshdup.base.params import DocumentParams, FormatLimits
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.cli.main import lshdup
from lshdup.collection import filtering
from lshdup.errors import ArtifactError, InputError
from lshdup.sources import archives, finding, readers, rewriting
from lshdup.sources.document_list import DocumentList, Locations
from lshdup.sources.expansion import list_lines
from lshdup.sources.readers import RecordFiles
from lshdup.sources.records import RecordError, RecordFields
from lshdup.store.memo import Memo
from lshdup.store.npz import DAMAGED, damage_explained
from lshdup.store.store import Store
from lshdup.text import office_processes
from lshdup.workspace.loading import load_last_collection, load_sets, load_signatures
from lshdup.workspace.request import Request
from tests.conftest import failing, open_workspace, write_files
from tests.documents import find, listed, reasons

TEXT = "some words that are the same in each of these three documents, but for number"
GONE = OSError(errno.EIO, "Input/output error")


@pytest.fixture
def here(here):
    """Three near-duplicates."""
    write_files(".", {f"d/{number}": f"{TEXT} {number}" for number in range(3)})
    return here


@pytest.mark.parametrize(
    ("error", "said"),
    [(GONE, "Input/output"), (NoRoomError("no room", "make some"), "no room; make some")],
)
def test_rows_that_cannot_be_listed_cost_their_file_only(here, monkeypatch, error, said):
    Path("rows.jsonl").write_text(json.dumps({"text": TEXT}))
    monkeypatch.setattr(RecordFiles, "list_records", failing(error))
    documents, skipped = find("d", "rows.jsonl")
    assert list(documents.names) == [b"d/0", b"d/1", b"d/2"]
    assert reasons(skipped) == {b"rows.jsonl": Reason.UNREADABLE}
    assert said in skipped[0].detail


def test_a_link_that_goes_while_files_are_found(here, monkeypatch):
    Path("elsewhere").write_text(TEXT)
    Path("d/link").symlink_to("../elsewhere")
    whole, fail = os.path.realpath, failing(GONE)
    monkeypatch.setattr(
        finding.os.path, "realpath",
        lambda path, **options: (fail if path == b"d/link" else whole)(path, **options),
    )  # fmt: skip
    found, skipped = listed("d", follow=True)
    assert sorted(found) == [b"d/0", b"d/1", b"d/2"]
    assert reasons(skipped) == {b"d/link": Reason.UNREADABLE}


def test_a_list_of_ids_that_goes(here):
    write_files(".", {"ids": "a 1 2 3\n", "gone": "b 1 2 3\n"})
    names = StringTable.from_strings([b"gone", b"ids"])
    files = DocumentList(names, np.array([8, 8]), np.array([0, 0]))
    Path("gone").unlink()
    skipped = []
    assert list(list_lines(replace(Run.quiet(), skipped=skipped.append), files).names) == [b"a"]
    assert reasons(skipped) == {b"gone": Reason.VANISHED}


def test_what_cannot_be_looked_into_is_no_mailbox_and_no_dump(here):
    assert not mbox.is_mailbox_file(b"nowhere")
    assert not readers.is_dump(b"nowhere")


def test_a_page_of_a_dump_that_is_damaged():
    with pytest.raises(RecordError, match="its XML is damaged"):
        archives.WikiDump(0, RecordFields(), 100).content(memoryview(b"<page><text>a</page>"))


def test_a_template_that_cannot_be_listed(here, monkeypatch):
    monkeypatch.setattr(filtering, "find_documents", failing(InputError("x: Input/output error")))
    with pytest.raises(InputError, match=r"^--template x: Input/output error$") as error:
        lshdup.main(["pairs", "d", "--template", "d/0", "--no-store"], standalone_mode=False)
    assert "name files with the texts" in error.value.hint


def test_documents_that_are_not_there():
    names = StringTable.from_strings([b"a"])
    documents = DocumentList(names, np.array([1]), np.array([1]))
    with pytest.raises(ArtifactError, match="documents whose names are not there"):
        documents.typed_names(np.array([1]))
    places = Locations.of_files(names, np.array([1]))
    with pytest.raises(ArtifactError, match="documents that are not there"):
        places.files_of(np.array([1]))


def test_no_process_can_be_started(monkeypatch):
    pytest.importorskip("kreuzberg")
    monkeypatch.setattr(office_processes, "_extract_with", failing(GONE))
    (text,) = office_processes.extract_all([b"x"], "docx", FormatLimits())
    assert text.reason == Reason.CRASHED
    assert text.detail == "no process can be started for it: Input/output error"


def test_a_reader_whose_version_is_not_known(monkeypatch):
    known, cached = office_processes.reader_version(), office_processes.reader_version
    monkeypatch.setattr(metadata, "version", failing(metadata.PackageNotFoundError("x")))
    assert known.startswith(getattr(cached, "__wrapped__", cached)())


@pytest.mark.parametrize("error", [None, OSError(errno.EDEADLK, "held"), OSError(errno.EIO, "no")])
def test_locks_of_windows(tmp_path, monkeypatch, error):
    """A byte far behind the end of the file is locked; EDEADLK says that another one has it."""
    calls = []

    def locking(descriptor, mode, size):
        calls.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, size))
        if error is not None:
            raise error

    monkeypatch.setitem(sys.modules, "fcntl", None)
    windows = types.SimpleNamespace(locking=locking, LK_NBLCK=7)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    with open(tmp_path / "lock", "wb+") as file:
        file.write(b"text")
        file.flush()
        if error is not None and error.errno == errno.EDEADLK:
            with pytest.raises(BlockingIOError):
                system.hold(file.fileno())
        else:
            assert system.hold(file.fileno()) is (error is None)
        assert calls == [(1 << 30, 7, 1)]
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0
        monkeypatch.setitem(sys.modules, "msvcrt", None)
        assert not system.hold(file.fileno())


def test_temporary_files_where_open_files_stay(tmp_path, monkeypatch):
    """As on Windows, which removes no open file: what is a day old is of no run."""
    monkeypatch.setattr(atomic, "CAN_MOVE_OPEN_FILES", False)
    new, old, folder = (f"{PREFIX}{8 * letter}{SUFFIX}" for letter in "nof")
    write_files(tmp_path, dict.fromkeys((new, old, "own.tmp"), "text"))
    (tmp_path / folder).mkdir()
    for name in (old, folder, "own.tmp"):
        os.utime(tmp_path / name, (0, 0))
    atomic.Folder(tmp_path).remove_temporary_files()
    assert sorted(os.listdir(tmp_path)) == sorted([new, folder, "own.tmp"])


def test_what_a_system_lacks(tmp_path, monkeypatch):
    """A library of C, and locks; and a descriptor that is closed is no pipe."""
    monkeypatch.setattr("ctypes.CDLL", failing(TypeError()))
    assert system._c_function.__wrapped__("malloc_trim") is None
    monkeypatch.setattr("fcntl.flock", failing(GONE))
    with open(tmp_path / "lock", "wb") as file:
        assert not system.hold(file.fileno())
    assert not system.is_waiting_pipe(-1)


def test_sets_that_are_damaged_are_as_good_as_not_there(here, run):
    run("pairs d -q -t 0.5")
    run("shingle d -q")
    workspace = open_workspace(".lshdup")
    collection = replace(load_last_collection(workspace), sets=None)
    assert len(load_sets(workspace, collection, verify=True).sizes) == 3
    Path(".lshdup/shingles.npz").write_bytes(b"junk")
    assert load_sets(open_workspace(".lshdup"), collection, verify=True) is None


@pytest.mark.parametrize("error", DAMAGED)
def test_a_header_that_does_not_fit_is_damage(error):
    said = r"^x\.npz is damaged \(.*why.*\)$"
    explained = damage_explained(Path("x.npz"), "mend it")
    with pytest.raises(ArtifactError, match=said) as raised, explained:
        raise error("why")
    assert raised.value.hint == "mend it"


def test_a_file_that_is_damaged_while_it_is_written_anew():
    said = r"^x is not written, because the file .* damaged: why$"
    with pytest.raises(InputError, match=said), rewriting._reporting(Path("x")):
        raise RecordError(Reason.DAMAGED, "why")


@pytest.mark.parametrize("has_parts", [True, False])
def test_parts_of_an_interrupted_run_make_room_for_what_is_saved(here, monkeypatch, has_parts):
    """They are nearly as large."""
    workspace = open_workspace(".lshdup")
    request = Request((b"d",), DocumentParams(), {})
    collection = load_signatures(workspace, request)
    left, saved, fail = ["part"] * has_parts, [], failing(ArtifactError("no room", ""))

    def save(_, kind, made, **options):
        if left or not has_parts:
            fail()
        saved.append((kind, made))

    monkeypatch.setattr(Store, "save_collection", save)
    monkeypatch.setattr(Memo, "remove", lambda _: bool(left) and left.pop() == "part")
    memo = Memo(workspace, workspace.store, None, False, collection.shingle, collection.sketch)
    if has_parts:
        memo.save_artifact(collection, "signatures")
        assert saved == [("signatures", collection)]
        left.extend(["part", "more"])  # now it is not room enough
    with pytest.raises(ArtifactError, match="no room"):
        memo.save_artifact(collection, "signatures")
