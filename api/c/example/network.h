#ifndef COMMTUNE_EXAMPLE_NETWORK_H
#define COMMTUNE_EXAMPLE_NETWORK_H
/* A perceptron with two hidden layers that tells which of two spirals a point of the plane is on. Its six
 * parameter tensors are numbered in the order of the forward pass: weights and biases of each layer. */

#include <stddef.h>

enum { kLayers = 3, kTensors = 2 * kLayers, kSamples = 512 };

extern const char* const kNames[kTensors];
extern const size_t kElements[kTensors];

typedef struct network {
  float* parameters[kTensors];
  float* gradients[kTensors]; /* means over the samples of one pass */
} network;

/* Called by backward() when a tensor's gradient is complete: the last layer's first. */
typedef void (*gradient_made)(void* context, size_t tensor);

/* Parameters of its own, equal for equal seeds; gradients are the caller's. */
void make_network(network* net, unsigned seed);
void free_network(network* net);

/* A forward and a backward pass over samples first, first + step, ... below kSamples.
 * returns  their mean loss (logistic) */
double pass(network* net, size_t first, size_t step, gradient_made made, void* context);

/* One step of plain gradient descent with a tensor's gradient. */
void update(network* net, size_t tensor, float rate);

#endif
