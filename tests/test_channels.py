"""The ways to lshdup besides PyPI: the action of GitHub, the hook of pre-commit (which is run in
golden/scenes/daily-gate.txt), the image, and the recipe of conda. What of them runs a shell is run;
the rest is held against pyproject.toml.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from lshdup.base.version import __version__
from tests.conftest import ROOT, require, write_files
from tests.running import clean_environment

yaml = require("test", "yaml")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]

FOX = "the quick brown fox jumps over the lazy dog and then runs away from it into the wood"

#: Makes a folder in which pip writes down what it is asked for, and lshdup is that of the tests.
FAKE_PYTHON = f"""#!/bin/bash -e
[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && cd "$3/bin"
printf '#!/bin/bash\\nprintf "%%s\\\\n" "$@" > "$RUNNER_TEMP/installed"\\n' > python
printf '#!/bin/bash\\nexec {shlex.quote(sys.executable)} -m lshdup "$@"\\n' > lshdup
chmod +x *
"""


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


@pytest.fixture
def act(here):
    """Run the steps of the action with inputs, as a runner does; return the last one's result."""
    action = load("action.yml")
    (here / "a temporary folder").mkdir()
    (here / "python").write_text(FAKE_PYTHON)
    (here / "python").chmod(0o755)

    def act(**inputs):
        values = {f"inputs.{name}": each["default"] for name, each in action["inputs"].items()}
        values |= {f"inputs.{name}": value for name, value in inputs.items()}
        values |= {"inputs.python": f"{here}/python", "github.action_path": "/the action"}
        for step in action["runs"]["steps"]:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "an input would be text of the script"
            variables = {
                name: re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)
                for name, text in step["env"].items()
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=here / "work", capture_output=True, text=True, check=False,
                env=clean_environment() | variables | {"RUNNER_TEMP": f"{here}/a temporary folder"},
            )  # fmt: skip
            assert done.returncode == 0 or step is action["runs"]["steps"][-1], done.stderr
        asked = (here / "a temporary folder/installed").read_text().splitlines()
        assert asked == ["-m", "pip", "install", "--quiet", "/the action"]
        return done

    return act


def test_the_action_is_a_gate(act, here):
    """Its exit code and annotations, for inputs that a shell could take for commands too."""
    names = ["docs", "$(touch x)", '"; touch x; "', "`touch x`", "-q", "two words", "empty"]
    files = {f"{name}/{file}": f"{FOX} {file}" for name in names[:-1] for file in "ab"}
    write_files(here / "work", files)
    (here / "work/empty").mkdir()
    done = act(docs="\n".join(names), options="--across folder\n-q\n")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("::error file=") == 60  # of 12 documents, none of one folder
    assert all(f"{name}/a" in done.stdout for name in names[:-1])
    assert act(docs="docs", options="--baseline known pairs\n--update-baseline").returncode == 0
    assert len((here / "work/known pairs").read_text().splitlines()) == 2
    for options, code in {
        "--baseline known pairs": 0, "--baseline known pairs; touch x": 2, "-t 1; touch x": 2,
        "$(touch x)": 1, "-t 0.999\n--same\ntext": 0,
    }.items():  # fmt: skip
        assert act(docs="docs", options=options).returncode == code, options
    assert len(act().stdout.splitlines()) == 66  # of 12 documents
    assert act(docs="empty").returncode == 2
    assert not [*here.rglob("x")]
    assert not [*here.rglob(".lshdup")]


def test_the_image_is_small_pinned_and_not_of_root():
    lines = [*(ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()]
    steps = [line.split(maxsplit=1) for line in lines if line and line[0] != "#"]
    bases = {step[1].removesuffix(" AS build") for step in steps if step[0] == "FROM"}
    (base,) = bases
    python = re.fullmatch(r"python:(3\.\d+)\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)[1]
    assert f"Programming Language :: Python :: {python}" in PROJECT["project"]["classifiers"]
    copied = {word for step in steps if step[0] == "COPY" for word in step[1].split()[:-1]}
    needed = {"pyproject.toml", "hatch_build.py", PROJECT["project"]["readme"]}
    needed |= {*PROJECT["project"]["license-files"]}
    needed |= {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    assert copied == needed
    assert all((ROOT / name).exists() for name in copied)
    *_, user, _, entry = steps
    assert user[0] == "USER"
    assert int(user[1].split(":")[0]) > 0
    assert entry[0] == "ENTRYPOINT"
    assert json.loads(entry[1]) == [*PROJECT["project"]["scripts"]]


def test_the_recipe_of_conda_is_that_of_the_project():
    recipe = load("conda/recipe.yaml")
    project, needs = PROJECT["project"], recipe["requirements"]

    def parsed(requirements):
        made = [Requirement(each) for each in requirements]
        return {each.name: each.specifier for each in made}

    python = f"python{project['requires-python']}"
    assert recipe["context"]["version"] == __version__
    run = [python, *BUILD["dependencies"], *BUILD["compiler"]]
    assert parsed(needs["run"]) == parsed(run)
    assert parsed(needs["host"]) == parsed([python, "pip", *PROJECT["build-system"]["requires"]])
    scripts = [f"{name} = {where}" for name, where in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    about = {"summary": project["description"], "license": project["license"]}
    assert recipe["about"] == about | {"license_file": project["license-files"][0]}


def test_what_the_page_shows_is_there():
    text = (ROOT / "docs/how-to/scripts-and-ci.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    workflow, hooks = map(yaml.safe_load, blocks)
    steps = workflow["jobs"]["duplicates"]["steps"]
    (step,) = [each for each in steps if "/lshdup@" in each["uses"]]
    assert {*step["with"]} <= {*load("action.yml")["inputs"]}
    assert [each["id"] for each in hooks["repos"][0]["hooks"]] == ["lshdup"]
    (hook,) = load(".pre-commit-hooks.yaml")
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("lshdup", "python", False)
    assert hook["entry"].split()[0] in PROJECT["project"]["scripts"]
    (line,) = re.findall(r"runs `lshdup (pairs .*?)`", text)
    assert line in load("action.yml")["runs"]["steps"][-1]["run"]


def test_actions_are_pinned():
    files = [ROOT / "action.yml", *(ROOT / ".github/workflows").iterdir()]
    used = re.findall(r"uses: *(\S+)", "\n".join(each.read_text() for each in files))
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d\S*", each)] == []


def test_what_a_release_ships_has_what_its_tests_read():
    shipped = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"action.yml", "Dockerfile", "conda", ".pre-commit-hooks.yaml"} <= {*shipped}
    assert all(os.path.exists(ROOT / name) for name in shipped)
