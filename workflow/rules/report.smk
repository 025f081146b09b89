# What people look at and send around.


# Each chart alone: HTML, SVG and PNG.
rule charts:
    localrule: True
    input:
        RESULTS + "/decision.json",
        RESULTS + "/measurements.parquet",
    output:
        directory(RESULTS + "/charts"),
    shell:
        "{PYTHON} {SCRIPTS:q}/chart.py --results {RESULTS:q} --output {output:q}"


# One self-contained page.
rule report:
    localrule: True
    input:
        RESULTS + "/decision.json",
        RESULTS + "/measurements.parquet",
        RESULTS + "/charts",
    output:
        RESULTS + "/report.html",
    shell:
        "{PYTHON} {SCRIPTS:q}/report.py --results {RESULTS:q} --output {output:q}"
