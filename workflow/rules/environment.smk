# The engine's own environment with its list of flags, and the model.


rule engine:
    """The engine, installed from pinned requirements or the study's own versions of it, and their flags."""
    localrule: True
    input:
        ancient(SOURCE),
        campaign.pins,
    output:
        RESULTS + "/engine.json",
    message:
        "engine: installing where needed, reading its flags"
    shell:
        "{PYTHON:q} {SCRIPTS:q}/fetch_engine.py --root {ROOT:q} --study {SOURCE:q} --output {output:q}"


rule model:
    """The model file, fetched once for all studies and checked by its SHA-256."""
    localrule: True
    input:
        ancient(SOURCE),
    output:
        RESULTS + "/model.json",
    message:
        "model: fetching where needed, checking its SHA-256"
    shell:
        "{PYTHON:q} {SCRIPTS:q}/fetch_model.py --study {SOURCE:q} --output {output:q}"


rule validate:
    """Check study, flags and preflight and say what would run and for how long; no server is started."""
    localrule: True
    input:
        RESULTS + "/engine.json",
    shell:
        "{PYTHON:q} {SCRIPTS:q}/validate.py --study {SOURCE:q}"


rule stop_servers:
    """End every server of ours on this machine that no run is using."""
    localrule: True
    shell:
        "{PYTHON:q} {SCRIPTS:q}/stop_servers.py"
