"""The model that a study serves: where its weights come from."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from pivotbench.study.fields import Line, Strict, check_reachable, folder_of, is_local, refusal, resolve
from pivotbench.wording import quoted

# Each part of it has 96 characters at most.
_HUB_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?"


class Model(Strict):
    """The model to serve: a path or hub id, or a file inside a Python package."""

    name: Line = Field(default="", description="Name in reports. Default: the last part of path or file.")
    path: Line | None = Field(
        default=None,
        description="Hub id such as org/model, or a local path that starts with /, ./, ../ or ~; "
        "relative to the study file.",
    )
    revision: Line | None = Field(default=None, description="Commit, tag or branch of the hub id in path.")
    package: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*$",
        description="Pinned Python package, name==version, whose wheel holds the model file.",
    )
    file: Line | None = Field(default=None, description="Path of the model file inside the package's wheel.")
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 of the model file, 64 hex digits; needed with package, as is file.",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_from_path(cls, data: Any) -> Any:
        if isinstance(data, dict) and "name" not in data:
            place = data.get("path") or data.get("file")
            if isinstance(place, str) and PurePosixPath(place).name:
                name = PurePosixPath(place).name
                return {**data, "name": name.removesuffix(".gguf")}
        return data

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @property
    def local_path(self) -> Path | None:
        """The absolute path of a local model, or None for a hub id or a package."""
        return resolve(self.path, self._folder) if self.path and is_local(self.path) else None

    @model_validator(mode="after")
    def _one_origin(self, info: ValidationInfo) -> Model:
        self._folder = folder_of(info)
        if (self.path is None) == (self.package is None):
            raise refusal("give either path, or package with file and sha256")
        if self.package is not None:
            for key in ("file", "sha256"):
                if getattr(self, key) is None:
                    raise refusal(f"{key} is required with package")
            if self.revision is not None:
                raise refusal("revision belongs to a hub id in path; a package has its version", "revision")
            if self.file and (
                PurePosixPath(self.file).is_absolute() or ".." in PurePosixPath(self.file).parts
            ):
                raise refusal("must be a path inside the package", "file")
            # Its last part is the name under which the cache keeps it.
            check_reachable(Path(PurePosixPath(self.file or "").name), "file")
        else:
            for key in ("file", "sha256"):
                if getattr(self, key) is not None:
                    raise refusal(
                        f"{key} belongs to a package; remove it or give package instead of path", key
                    )
            self._check_path(self.path or "")
        return self

    def _check_path(self, path: str) -> None:
        if is_local(path):
            if self.revision is not None:
                raise refusal("revision belongs to a hub id; path is local", "revision")
            check_reachable(resolve(path, self._folder), "path")
        elif not re.fullmatch(_HUB_ID, path):
            raise refusal(f"{quoted(path)} is no hub id (org/model); begin a local path with ./", "path")


def _model_from_text(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


ServedModel = Annotated[Model, BeforeValidator(_model_from_text)]
