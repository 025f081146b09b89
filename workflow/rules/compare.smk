# What changed between two folders of results; nothing is launched, and neither folder is written to.

COMPARE = "{PYTHON:q} {SCRIPTS:q}/compare.py --old={OLD:q} --new={NEW:q}"


def two_folders(_):
    """No file: were a folder's decision an input, a comparison would first bring that study up to date."""
    bridge.need_two_folders()
    return []


rule compare:
    """What changed between two folders of results: --config old=results/A new=results/B."""
    localrule: True
    input:
        two_folders,
    shell:
        COMPARE


rule compare_gate:
    """The same, and fail where the change may not pass: slower, broken, other answers (docs/comparing.md)."""
    localrule: True
    input:
        two_folders,
    shell:
        COMPARE + " --gate"
