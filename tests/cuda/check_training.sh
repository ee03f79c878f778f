#!/bin/sh
# Runs check_training in several processes of this machine, one for each GPU:
#   tests/cuda/check_training.sh [processes] [cpu]
# PROGRAM names it where it is not Bazel's.
set -u
count=${1:-2}
program=${PROGRAM:-bazel-bin/tests/cuda/check_training}
export WORLD_SIZE="$count" MASTER_PORT="${MASTER_PORT:-29511}"
processes=
rank=1
while [ "$rank" -lt "$count" ]; do
  RANK=$rank "$program" ${2:+"$2"} &
  processes="$processes $!"
  rank=$((rank + 1))
done
RANK=0 "$program" ${2:+"$2"}
code=$?
for process in $processes; do
  wait "$process" || code=1
done
exit "$code"
