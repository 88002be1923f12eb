#include "api/c/example/network.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kInputs = 2, kHidden = 32, kWidest = 32 };

static const size_t kWidth[kLayers + 1] = {kInputs, kHidden, kHidden, 1};

const char* const kNames[kTensors] = {"first.weight", "first.bias",  "second.weight",
                                      "second.bias",  "last.weight", "last.bias"};
const size_t kElements[kTensors] = {
    kInputs * (size_t)kHidden, kHidden, kHidden * (size_t)kHidden, kHidden, kHidden, 1};

typedef struct sample {
  float inputs[kInputs];
  float label; /* 0 or 1: which spiral */
} sample;

static sample sample_of(size_t index) {
  const float label = (float)(index % 2);
  const size_t pair = index / 2, pairs = kSamples / 2;
  const float along = (float)pair / (float)pairs;
  const float angle = 3.0f * along * 3.14159265f / 2.0f + label * 3.14159265f;
  const sample made = {{(0.2f + along) * cosf(angle), (0.2f + along) * sinf(angle)}, label};
  return made;
}

/* Uniform in [-1, 1), by a linear congruential generator: the same on every machine. */
static float random_number(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

void make_network(network* net, unsigned seed) {
  uint32_t state = seed;
  for (size_t tensor = 0; tensor < kTensors; ++tensor) {
    const size_t layer = tensor / 2;
    const float range = tensor % 2 == 0 ? sqrtf(3.0f / (float)kWidth[layer]) : 0.0f;
    net->parameters[tensor] = malloc(kElements[tensor] * sizeof(float));
    if (net->parameters[tensor] == NULL) abort();
    for (size_t i = 0; i < kElements[tensor]; ++i) net->parameters[tensor][i] = range * random_number(&state);
  }
}

void free_network(network* net) {
  for (size_t tensor = 0; tensor < kTensors; ++tensor) free(net->parameters[tensor]);
}

/* What each layer made of each sample, and what the loss says of that. */
typedef struct activations {
  float values[kLayers + 1][kSamples][kWidest];
  float errors[kLayers + 1][kSamples][kWidest];
} activations;

static void forward(const network* net, size_t layer, activations* seen, size_t samples) {
  const float* weight = net->parameters[2 * layer];
  const float* bias = net->parameters[2 * layer + 1];
  for (size_t s = 0; s < samples; ++s) {
    for (size_t out = 0; out < kWidth[layer + 1]; ++out) {
      float sum = bias[out];
      for (size_t in = 0; in < kWidth[layer]; ++in)
        sum += weight[out * kWidth[layer] + in] * seen->values[layer][s][in];
      seen->values[layer + 1][s][out] = layer + 1 < kLayers ? tanhf(sum) : sum;
    }
  }
}

/* Errors of the layer's outputs are known: makes its gradients, and the errors of what came in. */
static void backward(network* net, size_t layer, activations* seen, size_t samples) {
  const size_t inputs = kWidth[layer], outputs = kWidth[layer + 1];
  const float* weight = net->parameters[2 * layer];
  float* weight_gradient = net->gradients[2 * layer];
  float* bias_gradient = net->gradients[2 * layer + 1];
  memset(weight_gradient, 0, kElements[2 * layer] * sizeof(float));
  memset(bias_gradient, 0, kElements[2 * layer + 1] * sizeof(float));
  for (size_t s = 0; s < samples; ++s) {
    const float* in_values = seen->values[layer][s];
    const float* out_errors = seen->errors[layer + 1][s];
    for (size_t in = 0; in < inputs; ++in) {
      float sum = 0.0f;
      for (size_t out = 0; out < outputs; ++out) {
        sum += weight[out * inputs + in] * out_errors[out];
        weight_gradient[out * inputs + in] += out_errors[out] * in_values[in] / (float)samples;
      }
      seen->errors[layer][s][in] = sum * (1.0f - in_values[in] * in_values[in]);
    }
    for (size_t out = 0; out < outputs; ++out) bias_gradient[out] += out_errors[out] / (float)samples;
  }
}

double pass(network* net, size_t first, size_t step, gradient_made made, void* context) {
  activations* seen = calloc(1, sizeof *seen);
  if (seen == NULL) abort();
  size_t samples = 0;
  double loss = 0.0;
  for (size_t index = first; index < kSamples; index += step) {
    const sample taken = sample_of(index);
    memcpy(seen->values[0][samples++], taken.inputs, sizeof taken.inputs);
  }
  for (size_t layer = 0; layer < kLayers; ++layer) forward(net, layer, seen, samples);
  for (size_t s = 0; s < samples; ++s) {
    const float score = seen->values[kLayers][s][0], label = sample_of(first + s * step).label;
    const float probability = 1.0f / (1.0f + expf(-score));
    loss -= log(fmax(1e-7, label > 0.5f ? probability : 1.0f - probability)) / (double)samples;
    seen->errors[kLayers][s][0] = probability - label;
  }
  for (size_t layer = kLayers; layer-- > 0;) {
    backward(net, layer, seen, samples);
    made(context, 2 * layer + 1);
    made(context, 2 * layer);
  }
  free(seen);
  return loss;
}

void update(network* net, size_t tensor, float rate) {
  for (size_t i = 0; i < kElements[tensor]; ++i)
    net->parameters[tensor][i] -= rate * net->gradients[tensor][i];
}
