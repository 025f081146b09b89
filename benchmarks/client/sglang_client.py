"""Runs SGLang's Python client or its Rust client with the options given: sglang_client.py python|rust ..."""

from __future__ import annotations

import sys

import sglang_imports

if __name__ == "__main__":
    kind = sys.argv.pop(1)
    sglang_imports.prepare()
    if kind == "python":
        from sglang.benchmark.serving import cli_main

        sys.exit(cli_main())
    from sglang.benchmark.rust_client import main

    sys.exit(main())
