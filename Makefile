# What is done often, in the environment .venv. `make` alone lists it.
python := .venv/bin/python

help:
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile

.venv/.tools: pyproject.toml
	python3 -m venv .venv
	.venv/bin/pip install --quiet --editable '.[test,lint,docs]'
	touch .venv/.tools

test: .venv/.tools ## the tests of every day, in less than four minutes on two cores
	$(python) -m pytest -n 3 --dist worksteal

lint: .venv/.tools ## ruff, mypy, codespell
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/codespell README.md CHANGELOG.md docs

pages: .venv/.tools ## the generated pages, and the site of the documentation in site/
	$(python) .ci/reference
	.venv/bin/mkdocs build --strict

bench: .venv/.tools ## the first table of benchmarks/README.md
	.venv/bin/pip install --quiet --editable '.[bench,parquet]'
	$(python) -m benchmarks.run --only budgets

dist: .venv/.tools ## wheel and sdist in dist/, checked
	.venv/bin/pip install --quiet build twine
	$(python) -m build
	.venv/bin/twine check --strict dist/*

ci: ## everything, as on a fresh machine
	.ci/run

.PHONY: help test lint pages bench dist ci
