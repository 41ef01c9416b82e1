"""Texts that are kept in nameless files: each is found again, whoever writes at the same time, and what does not fit takes no room."""

import os
import threading

import numpy as np
import pytest

from lshdup.documents.files import Buffer
from lshdup.documents.text_cache import Scratch
from lshdup.utils.ragged import offsets_of
from lshdup.utils.scratch import NoRoomError


def piece(texts, before=b""):
    """Texts as Arrow has them: `before` is what a slice of an array leaves in front."""
    data = np.frombuffer(before + b"".join(text or b"" for text in texts), np.uint8)
    offsets = offsets_of(np.array([len(text or b"") for text in texts], np.int64)) + len(before)
    return data, offsets, np.array([text is None for text in texts], bool)


def read(kept, rows):
    starts, lengths = kept.spans(np.array(rows, np.int64))
    text, places = kept.read(starts, lengths, Buffer())
    return [
        text[place : place + length].tobytes()
        for place, length in zip(places, lengths, strict=True)
    ]


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == []


def size(scratch):
    return sum(os.fstat(file.fileno()).st_size for file in scratch._files)


def test_texts_are_found_again(scratch):
    first = scratch.keep(b"a", [piece([b"one", None, b""]), piece([b"four"], before=b"xyz")])
    empty = scratch.keep(b"b", [])
    second = scratch.keep(b"c", [piece([b"five", b"six"])])
    assert read(first, [0, 2, 3]) == [b"one", b"", b"four"]
    assert read(first, [3]) == [b"four"]
    assert read(second, [1]) == [b"six"]
    assert (first.null.tolist(), len(empty.null)) == ([False, True, False, False], 0)
    assert (len(scratch._files), size(scratch)) == (1, len(b"onefourfivesix"))


def test_many_write_at_once(scratch):
    begun, kept = threading.Barrier(4), {}

    def work(number):
        def pieces(at):
            for part in range(20):
                yield piece([b"%d %d %d" % (number, at, part)] * 3)

        begun.wait()
        for at in range(25):
            kept[number, at] = scratch.keep(b"a", pieces(at))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 100
    for (number, at), each in kept.items():
        assert read(each, range(60)) == [b"%d %d %d" % (number, at, row // 3) for row in range(60)]
    assert len(scratch._files) <= 4


def test_no_room_in_the_middle(scratch, monkeypatch):
    first = scratch.keep(b"a", [piece([b"one"])])
    write = os.pwrite

    def little_room(file, data, at):
        if at + len(data) > 10:
            raise OSError(28, "No space left on device")
        return write(file, data, at)

    monkeypatch.setattr(os, "pwrite", little_room)
    asked = []
    pieces = (asked.append(number) or piece([b"12345"]) for number in range(5))
    assert scratch.keep(b"b", pieces) is None
    assert (scratch.full, asked, size(scratch)) == (True, [0, 1], 3)
    assert scratch.keep(b"c", iter([1 / 1, "is not looked at"])) is None
    assert read(first, [0]) == [b"one"]


def test_no_file_to_write_to(tmp_path, monkeypatch):
    def full(*_):
        message = "none"
        raise NoRoomError(message)

    monkeypatch.setattr("lshdup.documents.text_cache.new_scratch", full)
    scratch = Scratch(tmp_path)
    assert scratch.keep(b"a", [piece([b"one"])]) is None
    assert scratch.full


def test_what_cannot_be_decoded_takes_no_room(scratch):
    first = scratch.keep(b"a", [piece([b"one"])])

    def pieces():
        yield piece([b"two"])
        message = "damaged"
        raise ValueError(message)

    with pytest.raises(ValueError, match="damaged"):
        scratch.keep(b"b", pieces())
    assert (size(scratch), scratch.full) == (3, False)
    second = scratch.keep(b"c", [piece([b"three"])])
    assert read(first, [0]) + read(second, [0]) == [b"one", b"three"]
    assert len(scratch._files) == 1
