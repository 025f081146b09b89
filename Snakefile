# Which serving configuration works, which is faster, and does speculation pay?
#
#   snakemake --cores 1 all                              the whole campaign of config/config.yaml
#   snakemake --cores 1 all --config study=PATH          of another study
#   snakemake --cores 1 results/demo/backends/flash-on/r1/throughput.json     one stage
#   snakemake --list-target-rules                        what else there is


include: "workflow/rules/common.smk"

# Reports from what is stored launch nothing: snakemake --cores 1 all --config frozen=true
if not FROZEN:

    include: "workflow/rules/environment.smk"
    include: "workflow/rules/cell.smk"
    include: "workflow/rules/rounds.smk"


include: "workflow/rules/decision.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/compare.smk"


rule all:
    """Everything: both phases, the decision, its charts and the report."""
    default_target: True
    input:
        evidence_files,
        multiext(f"{RESULTS}/measurements", ".parquet", ".csv"),
        f"{RESULTS}/environment.json",
        f"{RESULTS}/decision.json",
        f"{RESULTS}/summary.md",
        f"{RESULTS}/charts",
        f"{RESULTS}/report.html",


rule backends:
    """The first phase alone: which backend works and which is fastest."""
    input:
        backend_races,


rule speculative:
    """Both phases without charts and report: the backends, then speculation on the winner."""
    input:
        race_files,
