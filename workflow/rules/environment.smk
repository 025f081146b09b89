# The engine's own environment with its list of flags, and the model.


# The engine, installed from pinned requirements (or the study's own, in any number of versions), and their flags.
rule engine:
    localrule: True
    input:
        ancient(SOURCE),
        campaign.pins,
    output:
        RESULTS + "/engine.json",
    message:
        "engine: installing where needed, reading its flags"
    shell:
        "{PYTHON} {SCRIPTS:q}/fetch_engine.py --root {ROOT} --study {SOURCE:q} --output {output:q}"


# The model file, fetched once for all studies and checked by its SHA-256.
rule model:
    localrule: True
    input:
        ancient(SOURCE),
    output:
        RESULTS + "/model.json",
    message:
        "model: fetching where needed, checking its SHA-256"
    shell:
        "{PYTHON} {SCRIPTS:q}/fetch_model.py --study {SOURCE:q} --output {output:q}"


# Check the study, and its flags against the engine's own list; no server is started.
rule validate:
    localrule: True
    input:
        RESULTS + "/engine.json",


# End every server of ours on this machine that no run is using.
rule stop_servers:
    localrule: True
    shell:
        "{PYTHON} {SCRIPTS:q}/stop_servers.py"
