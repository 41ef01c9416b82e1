"""What is typed, and what is said, printed and left by it: scenes at the shell, several of them in
a file of tests/golden/scenes.

The lines before the first scene make the folder of each scene of a file ($ROOT is this checkout). A
scene begins with `== ` and its name, and may have comments. `$ ` begins a line of bash; behind it
stand what it says on standard error (`! `), what it prints (`> `), and its exit code (`= 2`), if
that is not 0.
LSHDUP_UPDATE_GOLDEN=1, without -n, writes them anew: look at what changed before you keep it.
"""

import os
import re

import pytest

from tests.conftest import drawn
from tests.golden import GOLDEN
from tests.running import ROOT, shell

#: What a line of bash may use: this checkout, and the same order everywhere.
_BEGIN = f"""ROOT={ROOT}
ls() {{ LC_ALL=C command ls "$@"; }}
sort() {{ LC_ALL=C command sort "$@"; }}
"""

#: {(file, name of the scene): (lines that make its folder, its lines)}
SCENES = {}
for _path in sorted((GOLDEN / "scenes").glob("*.txt")):
    _begin, *_scenes = re.split(r"^== ", _path.read_text(), flags=re.MULTILINE)
    _names = [each.partition("\n")[0] for each in _scenes]
    assert len(_names) == len({*_names}), _path
    for _name, _scene in zip(_names, _scenes, strict=True):
        SCENES[_path.stem, _name] = _begin, _scene.partition("\n")[2]


def commands_of(text):
    return re.findall(r"^\$ (.*)$", text, re.MULTILINE)


def as_shown(data, mark, folder):
    """The lines of bytes, without the folder's name and what a clock says; a control character is
    its picture, and a byte that is no text stands in ‹›.
    """
    text = data.replace(bytes(folder), b"HERE").decode("utf-8", "surrogateescape")
    text = re.sub(r"\d+\.\d+ s\b", "# s", text)
    text = re.sub(r"[\0-\x08\x0b-\x1f]", lambda c: chr(0x2400 + ord(c[0])), text)
    text = re.sub(r"[\x7f-\x9f\udc80-\udcff]", lambda c: f"‹{ord(c[0]) & 0xFF:02x}›", text)
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in text.removesuffix("\n").split("\n"))


def played(begin, scene, folder, kept):
    """The scene with what its commands say, print and end with in a folder."""
    made, lines = commands_of(begin), commands_of(scene)
    script = _BEGIN + "\n".join(
        f"{{ {line}\n}} > {kept}/{number}.out 2> {kept}/{number}.err < /dev/null\n"
        f"echo $? > {kept}/{number}.code"
        for number, line in enumerate([*made, *lines])
    )
    done = shell(script, folder)
    assert not done.stderr, done.stderr

    def answer(number):
        told = ((kind, (kept / f"{number}.{kind}").read_bytes()) for kind in ("err", "out", "code"))
        return "".join(
            as_shown(data, {"err": "!", "out": ">", "code": "="}[kind], folder)
            for kind, data in told
            if data and (kind, data) != ("code", b"0\n")
        )

    assert not any(map(answer, range(len(made)))), [*map(answer, range(len(made)))]
    numbers = iter(range(len(made), len(made) + len(lines)))
    told = re.sub(r"^(?![#$]).*\n", "", scene, flags=re.MULTILINE)
    return re.sub(
        r"^\$ .*\n", lambda line: line[0] + answer(next(numbers)), told, flags=re.MULTILINE
    )


#: Scenes of so many runs of the program that a third of them is for one day.
LONG = (
    ("accepted", "two documents, and all commands"),
    ("clusters", "which is kept"),
    ("conflicts", "options that a run would ignore are refused, with the reason"),
    ("continuing", "no output is an input"),
    ("corpus", "one saved run answers each higher threshold, and reads nothing"),
    ("noisy", "what is typed wins over --noisy, and --noisy over variables"),
    ("stores", "each collection in turn reads no file twice"),
    ("stores", "signatures of documents that are read again are those of a run with DOCS"),
    ("threshold", "a pair exactly at the threshold is found by every way"),
)
TODAY = [each for each in SCENES if each not in LONG] + drawn(LONG, 3)


@pytest.mark.parametrize(("file", "name"), TODAY)
def test_scene(file, name, tmp_path):
    begin, scene = SCENES[file, name]
    for folder in ("here", "kept"):
        (tmp_path / folder).mkdir()
    seen = played(begin, f"{scene}\n", tmp_path / "here", tmp_path / "kept")
    assert not re.search("Traceback|defect of lshdup", seen), seen
    if os.environ.get("LSHDUP_UPDATE_GOLDEN"):
        path = GOLDEN / f"scenes/{file}.txt"
        scenes = path.read_text().replace(f"== {name}\n{scene}", f"== {name}\n{seen}\n")
        path.write_text(scenes.rstrip() + "\n")
    assert seen.splitlines() == [line for line in scene.splitlines() if line]
