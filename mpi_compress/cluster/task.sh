#!/bin/bash
@head@

index=$((SLURM_ARRAY_TASK_ID * @pack@ + ${1:-@first@}))    # of the run in the job
echo "@begins@ run $index, $(date '+%Y-%m-%d %H:%M:%S')"
unset SLURM_EXPORT_ENV    # a site's --export=NONE is for this script, and not for the ranks that it starts
export OMP_NUM_THREADS=1
@begin@

# USR1, SLURM's warning before the time limit, and TERM make a run save what it has and end with status @stopped@.
trap '' USR1 TERM      # what is started here ignores them until it listens
@play@
trap 'warned=yes; kill -USR1 $programs 2>/dev/null' USR1
status=0
for program in $programs; do
    while kill -0 $program 2>/dev/null; do wait $program; done    # a warning ends a wait before the program has ended
    for attempt in 1 2 3 4 5; do    # a warning may end this wait too, and the next one still tells the status
        wait $program; own=$?
        if [ $own -le 128 ]; then break; fi
    done
    if [ $own -ne 0 ] && [ $status -ne @stopped@ ]; then status=$own; fi    # one that was saved asks to go on
done
echo "@ends@ $status"

# What was saved is queued again, and goes on, unless it was cancelled. SLURM is ending a task that was cancelled or has reached its
# time limit, and not one that it has only warned, of its limit or of a task that preempts it.
if [ $status -eq @stopped@ ] && [ "${SLURM_RESTART_COUNT:-0}" -lt @restarts@ ]; then
    for attempt in 1 2 3 4 5; do
        state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format='%T %r' 2>/dev/null) && break
        sleep 1
    done
    case "${state:-not known}" in
        RUNNING*|*TimeLimit*) again=yes ;;
        "not known") again=${warned:-} ;;
    esac
    if [ "${again:-}" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
fi
exit $status
