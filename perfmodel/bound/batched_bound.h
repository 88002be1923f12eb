#pragma once
// What start-ups alone rule out: bounds 3 and 4 of bound.h, for bound.cc.

#include "perfmodel/simulate/workload.h"

namespace commtune {

/// What a message costs one channel, at least.
struct Passing {
  double overhead = 0, beta = 0;  ///< it is kept for overhead + beta * m
  double lag = 0;                 ///< and the message is through this much later
};

/// A channel on which each message costs a start-up, and which they pass one after the other.
struct BatchedChannel {
  Passing passing;
  double largest = 1;  ///< no message carries more than this part of all that the channel has to do
};

/// A message costs its channel at least `overhead`, so few of them may go, and what waits until it can go
/// with others goes late. Largest T of which this rules out everything below, and at least `known`.
///
/// Number the messages as they are served. The first i of them carry x_i bytes, all of which existed when the
/// i-th was served; all that the i-th and later ones carry is wanted after the i-th is back, so that is no
/// later than T - q for the largest q among the M - x_(i-1) bytes of least tail. The least T that some
/// x_1 < x_2 < ... allows is found by dynamic programming over x, in cells.
double batched_bound(const Workload& work, const BatchedChannel& channel, double known);

/// The same with one moment in view, that at which some layer's gradients appear. Messages served before it
/// carry nothing of that layer nor of those before it in the forward pass, so that each must be back by the
/// largest tail of all; what they cannot have carried is still to be sent from then on, its most urgent bytes
/// first. Over a choice of layers. At least `known`.
double urgency_bound(const Workload& work, const BatchedChannel& channel, double known);

}  // namespace commtune
