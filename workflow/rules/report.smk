# What people look at and send around.


rule charts:
    """Each chart alone: HTML, SVG, PNG and Vega-Lite."""
    localrule: True
    input:
        RESULTS + "/decision.json",
        RESULTS + "/measurements.parquet",
    output:
        report(
            directory(RESULTS + "/charts"),
            patterns=["{chart}.html"],
            caption="../report/chart.rst",
            category="Charts",
            labels={"chart": "{chart}"},
        ),
    message:
        "charts: drawing each as HTML, SVG, PNG and Vega-Lite"
    params:
        rules=decision_rules,
    shell:
        "{PYTHON:q} {SCRIPTS:q}/chart.py --results {RESULTS:q} --output {output:q}"


rule report:
    """The decision and all behind it as one page to send around."""
    localrule: True
    input:
        RESULTS + "/decision.json",
        RESULTS + "/charts",
    output:
        report(
            RESULTS + "/report.html",
            caption="../report/report.rst",
            category="Decision",
        ),
    message:
        "report: writing the page"
    params:
        rules=decision_rules,
    shell:
        "{PYTHON:q} {SCRIPTS:q}/report.py --results {RESULTS:q} --output {output:q}"
