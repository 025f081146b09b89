"""Where an engine comes from: an environment of this machine or a container image; versions by name."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from pivotbench.machine import containers
from pivotbench.redaction import is_secret_variable
from pivotbench.study.fields import Line, Strict, StudyPath, folder_of, is_local, refusal, resolve

# The key in a configuration's flags that names its version: no engine has a flag of this name to serve with.
VERSION = "version"


class Container(Strict):
    """A container image that has the engine, and the runtime that starts it."""

    image: Line = Field(
        description="Image: for docker a reference such as lmsysorg/sglang:v0.5.16, for apptainer a .sif "
        "file (relative to the study file) or an address such as docker://lmsysorg/sglang:v0.5.16."
    )
    runtime: Literal["docker", "apptainer"] = Field(
        default="docker", description="Program that runs it, found on the PATH."
    )
    args: list[Line] = Field(
        default_factory=list,
        description="More options of `docker run` or `apptainer exec`, one an item. GPUs, model, caches, "
        "network and names are set without them.",
    )

    @field_validator("args")
    @classmethod
    def _no_secret(cls, args: list[str]) -> list[str]:
        for index, option in enumerate(args):
            assigned = re.search(r"(?:^|=)(\w+)=(.*)$", option)
            if assigned and is_secret_variable(assigned[1], assigned[2]):
                raise refusal(
                    f"every user of the machine can read a command line; set {assigned[1]} in your own "
                    f"environment and write secrets: [{assigned[1]}]",
                    index,
                )
        return args

    @model_validator(mode="after")
    def _image_is_a_file(self, info: ValidationInfo) -> Container:
        if self.runtime == "docker":
            if is_local(self.image) or "://" in self.image:
                raise refusal(
                    "docker takes a reference such as name:tag; a file needs runtime apptainer", "image"
                )
        elif "://" not in self.image:
            file = resolve(self.image, folder_of(info))
            if not file.exists():
                raise refusal(f"no such image: {file}", "image")
            self.image = str(file)
        return self

    @property
    def plain(self) -> containers.Container:
        """The container as the rest of the package knows it."""
        return containers.Container(self.runtime, self.image, tuple(self.args))


def image_from_text(value: Any) -> Any:
    return {"image": value} if isinstance(value, str) else value


ContainerKey = Annotated[Container | None, BeforeValidator(image_from_text)]


class Version(Strict):
    """One version of the engine: the interpreter of an environment, or a container image."""

    python: StudyPath | None = Field(
        default=None, description="Interpreter of an environment that has it, relative to the study file."
    )
    container: ContainerKey = Field(
        default=None, description="Container image that has it; plain text is short for its image."
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Version:
        if (self.python is None) == (self.container is None):
            raise refusal("give either python or container")
        return self
