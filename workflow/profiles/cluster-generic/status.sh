#!/usr/bin/env bash
# status.sh JOB prints success, failed or running: Snakemake asks for one of these three words.
told=$(scontrol --oneliner show job "$1" 2>&1)
state=$(sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p' <<<"$told" | head -n 1)
if [ -z "$state" ] && [[ $told == *"Invalid job id"* ]]; then
    # The controller has forgotten it; the accounts, where there are any, have not.
    state=$(sacct --allocations --noheader --parsable2 --format=State --jobs "$1" 2>/dev/null | head -n 1)
    state=${state:-FORGOTTEN}
fi
case "${state%% *}" in
    COMPLETED) echo success ;;
    BOOT_FAIL | CANCELLED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED | REVOKED | TIMEOUT | FORGOTTEN) echo failed ;;
    *) echo running ;; # a controller that does not answer says nothing of the job
esac
