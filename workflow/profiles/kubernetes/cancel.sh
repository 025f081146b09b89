#!/usr/bin/env bash
# cancel.sh JOB... ends jobs and their pods.
exec kubectl delete job --wait=false --ignore-not-found "$@"
