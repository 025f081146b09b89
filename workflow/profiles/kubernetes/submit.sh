#!/usr/bin/env bash
# submit.sh GPUS CPUS MEMORY_MB MINUTES SCRIPT makes a Job from job.yaml and prints its name.
set -euo pipefail
cache=${PIVOTBENCH_CACHE:-$HOME/.cache/pivotbench}
for path in "$PWD" "$5" "$cache"; do
    [[ $path =~ ^[A-Za-z0-9/._+-]+$ ]] || { echo "error: $path: only letters, digits and /._+- in paths of a job" >&2; exit 2; }
done
name=$(sed -e "s|@GPUS@|$1|g" -e "s|@CPUS@|$2|g" -e "s|@MEMORY_MB@|$3|g" -e "s|@SECONDS@|$(($4 * 60))|g" \
    -e "s|@SCRIPT@|$5|g" -e "s|@FOLDER@|$PWD|g" -e "s|@CACHE@|$cache|g" \
    "$(dirname "$0")/job.yaml" | kubectl create --output=name --filename=-)
echo "${name##*/}"
