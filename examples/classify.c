/* The same as classify.cpp, in C: classify_c MODEL. */
#include <stdio.h>
#include <wick/capi/wick.h>

int main(int argc, char** argv) {
  float pixels[28 * 28] = {0};
  const int64_t sizes[] = {1, 1, 28, 28};
  wick_module* model = NULL;
  wick_value* image = NULL;
  wick_value* scores = NULL;
  wick_limits limits = WICK_LIMITS_NONE;
  wick_tensor row = WICK_TENSOR_INIT;
  int failed, i, x, y, best = 0;

  for (y = 5; y < 23; ++y)
    for (x = 12; x < 15; ++x) pixels[y * 28 + x] = 1;

  limits.seconds = 60;
  failed = wick_module_load(argc > 1 ? argv[1] : "digits.pt", &limits, &model) ||
           wick_module_set_training(model, 0) ||
           wick_value_from_data(WICK_FLOAT32, sizes, 4, pixels, sizeof(pixels), &image) ||
           wick_module_call(model, NULL, &image, 1, NULL, &limits, &scores) ||
           wick_value_to_tensor(scores, &row);
  if (failed) {
    fprintf(stderr, "%s\n", wick_last_error()->message);
  } else {
    for (i = 0; i < 10; ++i)
      if (((float*)row.data)[i] > ((float*)row.data)[best]) best = i;
    printf("%d\n", best);
  }
  wick_value_free(scores);
  wick_value_free(image);
  wick_module_free(model);
  return failed;
}
/* Prints:
 * 1
 */
