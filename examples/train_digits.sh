#!/bin/sh
# Trains the digit model from its initial weights, with images that are drawn here: train_digits.sh [FOLDER].
# TORCHSCRIPT_CLI names the program where it is not on the path.
set -e
here=$(cd "$(dirname "$0")" && pwd)
cli=${TORCHSCRIPT_CLI:-torchscript-cli}
folder=${1:-.}

"$cli" run "$here/digits_data.py" --input 8000 --seed 1 --output "$folder/digits_train.pt"
"$cli" run "$here/digits_data.py" --input 1000 --seed 2 --output "$folder/digits_test.pt"
"$cli" run "$here/digits_data.py" --function initial_weights --seed 0 --output "$folder/digits_initial.pt"
"$cli" train "$here/digits.pt" --weights "$folder/digits_initial.pt" --data "$folder/digits_train.pt" \
  --validation-data "$folder/digits_test.pt" --loss nll --optimizer adam --lr 3e-3 --schedule cosine --epochs 5 \
  --batch-size 64 --plot "$folder/digits_loss.svg" --log "$folder/digits_log.jsonl" \
  --output "$folder/digits_trained.pt"
"$cli" run "$folder/digits_trained.pt" --input "@$here/seven.npy"
