/* Reads an image of a digit by a model that was compiled ahead of time; no engine is linked.
 *
 *   torchscript-cli build examples/digits.pt --input 1x1x28x28xf32 --output digits --emit library
 *   cc -Idigits examples/ahead/digits.c digits/libdigits.so -Wl,-rpath,$PWD/digits -o ahead
 *   ./ahead digits/digits.weights
 */
#include <stdio.h>

#include "digits.h"

int main(int argc, char** argv) {
  static float pixels[28 * 28];
  for (int y = 5; y < 23; ++y) {
    for (int x = 12; x < 15; ++x) pixels[y * 28 + x] = 1;
  }
  float scores[10];
  wick_aot_tensor image = {pixels, WICK_AOT_FLOAT32, 4, {1, 1, 28, 28}};
  wick_aot_tensor result = {scores, WICK_AOT_FLOAT32, 2, {1, 10}};
  wick_aot_state state;
  if (digits_init(&state, argc > 1 ? argv[1] : NULL) != WICK_AOT_OK ||
      digits_forward(&state, &image, &result) != WICK_AOT_OK) {
    fprintf(stderr, "%s\n", wick_aot_error(&state));
    return 1;
  }
  int best = 0;
  for (int i = 1; i < 10; ++i) best = scores[i] > scores[best] ? i : best;
  printf("%d\n", best);
  digits_free(&state);
  return 0;
}
