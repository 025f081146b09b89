"""Makes SGLang's two load clients importable without an inference engine beside them.

`import sglang` loads torch and FlashInfer, gigabytes that no load client uses. What runs here is the wheel's
own code of the clients; what is stood in for is never called when load is sent:

  sglang, sglang.srt.utils        the packages' own __init__, which import the engine
  sglang.srt.disaggregation.utils one constant of it is read, for an option that is not set
  datasets                        Hugging Face's, for an image data set that is not asked for
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import ModuleType

ROOT = Path(sysconfig.get_path("purelib")) / "sglang"


def _package(name: str, folder: Path) -> None:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def _module(name: str, **contents: object) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


def prepare() -> None:
    """Put the stand-ins in place; to be called before anything of sglang is imported."""
    _package("sglang", ROOT)
    _package("sglang.srt.utils", ROOT / "srt" / "utils")
    _module("sglang.srt.disaggregation.utils", FAKE_BOOTSTRAP_HOST="2.2.2.2")
    _module("datasets", load_dataset=None)
