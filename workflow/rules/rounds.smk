# After each round a race says who still needs another, or that the phase ended and why.


# Which configurations need another round?
checkpoint race:
    localrule: True
    input:
        race_cells,
    output:
        RESULTS + "/race/{phase}.r{round}.json",
    message:
        "{wildcards.phase}, round {wildcards.round}: judging"
    params:
        rules=decision_rules,
    shell:
        "{PYTHON:q} {SCRIPTS:q}/race.py --study {SOURCE:q} --phase {wildcards.phase:q}"
        " --round {wildcards.round:q} --output {output:q}"
