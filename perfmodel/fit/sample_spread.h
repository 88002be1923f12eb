#pragma once
// How far samples can be trusted, when some were repeated often and others once.

#include <span>
#include <vector>

#include "perfmodel/fit/fit.h"

namespace commtune {

/// Relative standard error of each sample's time: the median of its repetitions.
///
/// A few repetitions say little of their own scatter, and one says nothing: two that happen to agree are not
/// exact. So each sample's variance is taken together with that of samples of like size, which counts as
/// much as a handful of repetitions; a sample without an interval takes it from them alone. Where no sample
/// has both an interval and repetitions, a sample's own interval stands as it is, and no interval for none.
/// From shorter samples a longer one takes less: delays of a processor or a queue come independently of each
/// other, so their sum over t seconds has a deviation that grows with the root of t, and relative to t falls
/// with it.
/// Source: shrinking variances towards a pooled one, Smyth (2004), "Linear models and empirical Bayes".
///
/// samples  in any order, positive times
/// returns  by sample, as given
std::vector<double> relative_standard_errors(std::span<const Sample> samples);

}  // namespace commtune
