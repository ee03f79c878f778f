#!/bin/sh
# Runs pipelines over the GPUs of this machine: checks that their results are those of calls on one GPU, and
# prints throughput beside one GPU's, of a transformer of 48 blocks and ResNet-152:
#   tests/cuda/check_pipeline.sh [GPUs]
# PROGRAM names torchscript-cli where it is not Bazel's, MODELS a folder with the models where they are not
# to be made (by python3 with PyTorch), ITEMS how many items are timed.
set -u
count=${1:-2}
program=${PROGRAM:-bazel-bin/tools/torchscript-cli}
items=${ITEMS:-150}
folder=${MODELS:-}
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 "$(dirname "$0")/pipeline_models.py" "$folder" || exit 1
fi
code=0

# The number of that name in a JSON object.
number() {
  sed -n "s/.*\"$1\":\\([0-9.e+-]*\\).*/\\1/p"
}

check() {
  name=$1
  input=$2
  model="$folder/$name.pt"
  verified=$("$program" pipeline "$model" --eval --input "$input" --device cuda --stages "$count" \
    --items 6 --verify --json) || { echo "$name: results differ, or the run failed"; code=1; return; }
  echo "$name: $(echo "$verified" | number verified) results over $count GPUs have the bits of one GPU"
  one=$("$program" pipeline "$model" --eval --input "$input" --device cuda:0 --stages 1 --items "$items" \
    --json) || { code=1; return; }
  all=$("$program" pipeline "$model" --eval --input "$input" --device cuda --stages "$count" \
    --items "$items" --json) || { code=1; return; }
  one=$(echo "$one" | number items_per_s)
  echo "$all" | sed 's/.*"stages"/stages/'
  predicted=$(echo "$all" | number predicted_items_per_s)
  all=$(echo "$all" | number items_per_s)
  awk -v name="$name" -v count="$count" -v one="$one" -v all="$all" -v predicted="$predicted" 'BEGIN {
    printf "%s: one GPU %.2f items/s, %d GPUs %.2f (%.2f times), predicted %.2f\n", name, one, count, all,
      all / one, predicted }'
}

check transformer 8x256x768xf32
check resnet152 32x3x224x224xf32
exit "$code"
