# A cell is one configuration in one round: launch -> smoke -> throughput -> teardown.
# What a stage's result depends on is its parameter; the server is a lease, not a file.

CELL = RESULTS + "/{phase}/{configuration}/r{round}"
STAGE = "{PYTHON:q} {SCRIPTS:q}/{rule}.py --cell {params.asked:q} --host {HOST:q} --output {output:q}"


# A cold start of the cell's server.
rule launch:
    input:
        needs("launch"),
    output:
        CELL + "/launch.json",
    params:
        asked=asked("launch"),
    message:
        "{wildcards.configuration}, round {wildcards.round}: launch"
    priority: launch_priority
    resources:
        server_slot=1,
        gpu=GPUS,
        runtime=walltime("launch"),
    shell:
        STAGE


# Are the answers right enough that speed is worth measuring?
rule smoke:
    input:
        needs("smoke", CELL + "/launch.json"),
    output:
        CELL + "/smoke.json",
    params:
        asked=asked("smoke"),
    message:
        "{wildcards.configuration}, round {wildcards.round}: smoke test"
    priority: 1001
    resources:
        server_slot=1,
        gpu=GPUS,
        runtime=walltime("smoke"),
    shell:
        STAGE


# Every workload at every concurrency; requests.parquet keeps each request.
rule throughput:
    input:
        needs("throughput", CELL + "/launch.json", CELL + "/smoke.json"),
    output:
        CELL + "/throughput.json",
    params:
        asked=asked("throughput"),
    message:
        "{wildcards.configuration}, round {wildcards.round}: throughput"
    priority: 1002
    resources:
        server_slot=1,
        gpu=GPUS,
        runtime=walltime("throughput"),
    shell:
        STAGE


# The end of the server, and the proof that nothing of it is left.
rule teardown:
    input:
        needs(
            "teardown",
            CELL + "/launch.json",
            CELL + "/smoke.json",
            CELL + "/throughput.json",
        ),
    output:
        CELL + "/teardown.json",
    params:
        asked=asked("teardown"),
    message:
        "{wildcards.configuration}, round {wildcards.round}: teardown"
    priority: 1003
    resources:
        server_slot=1,
        gpu=GPUS,
        runtime=walltime("teardown"),
    shell:
        STAGE
