# From the cells that the races asked for to one table, and from the table to the decision.


# One row a sample: every window of every evidence cell; and the machines they ran on.
rule measurements:
    localrule: True
    input:
        evidence_files,
    output:
        RESULTS + "/measurements.parquet",
        RESULTS + "/measurements.csv",
        RESULTS + "/environment.json",
    params:
        rules=RULES,
    shell:
        "{PYTHON} {SCRIPTS:q}/measurements.py --study {SOURCE:q} --output {RESULTS:q}"


# What is eliminated and why, what is equivalent, what is fastest, whether speculation pays.
rule decide:
    localrule: True
    input:
        evidence_files,
        RESULTS + "/measurements.parquet",
    output:
        RESULTS + "/decision.json",
        RESULTS + "/summary.md",
    params:
        rules=RULES,
    shell:
        "{PYTHON} {SCRIPTS:q}/decide.py --study {SOURCE:q} --output {RESULTS:q}"
