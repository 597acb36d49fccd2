# Every target sets up what it needs first; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 9091

.PHONY: help setup run test faults check bench inspect fmt clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: ## Build the environment in .venv (quick when nothing changed)
	@scripts/setup

run: setup ## Start the demo server on 127.0.0.1:9091 (PORT=… for another)
	@exec $(BIN)/kektor try --port $(PORT)

test: setup ## Run all tests
	@$(BIN)/python -m pytest -n auto --dist worksteal

faults: setup ## Kill, cut, fill and damage at length (KEKTOR_FAULT_ROUNDS, KEKTOR_FAULT_SECONDS for other lengths)
	@KEKTOR_FAULT_ROUNDS=$${KEKTOR_FAULT_ROUNDS:-500} KEKTOR_FAULT_SECONDS=$${KEKTOR_FAULT_SECONDS:-900} \
		$(BIN)/python -m pytest -q -s tests/faults

check: setup ## Lint, types, import rules, Rust format, lints and tests
	@scripts/check

bench: setup ## Run the benchmarks in their short form (see benchmarks/README.md)
	@scripts/bench

inspect: setup ## Have the MCP inspector list and call every tool (needs npx and its registry)
	@KEKTOR_INSPECTOR=@modelcontextprotocol/inspector@0.17.5 $(BIN)/python -m pytest tests/conformance/test_mcp_every_tool.py

fmt: setup ## Format Python and Rust
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .
	@cargo fmt --manifest-path native/Cargo.toml

clean: ## Remove everything that was built
	rm -rf $(VENV) native/target build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
