# From the cells that the races asked for to one table, and from the table to the decision.


rule measurements:
    """One row a sample: every window of every cell of the evidence; and the machines they ran on."""
    localrule: True
    input:
        evidence_files,
    output:
        RESULTS + "/measurements.parquet",
        report(
            RESULTS + "/measurements.csv",
            caption="../report/measurements.rst",
            category="Measurements",
        ),
        RESULTS + "/environment.json",
    message:
        "measurements: every window of every cell as a table"
    params:
        rules=decision_rules,
    shell:
        "{PYTHON:q} {SCRIPTS:q}/measurements.py --study {SOURCE:q} --output {RESULTS:q}"


rule decide:
    """What is eliminated and why, what is equivalent, what is fastest, whether speculation pays."""
    localrule: True
    input:
        evidence_files,
        RESULTS + "/measurements.parquet",
    output:
        report(
            RESULTS + "/decision.json",
            caption="../report/decision.rst",
            category="Decision",
        ),
        report(
            RESULTS + "/summary.md",
            caption="../report/summary.rst",
            category="Decision",
        ),
    message:
        "decision: what is out, what is equal, what is fastest"
    params:
        rules=decision_rules,
    shell:
        "{PYTHON:q} {SCRIPTS:q}/decide.py --study {SOURCE:q} --output {RESULTS:q}"
