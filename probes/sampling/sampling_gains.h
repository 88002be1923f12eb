#pragma once
// What a sampling plan holds a visit to be worth, and how long a visit may take.

#include <cstddef>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// Gains are in units of "the half width of one median shrinks by the width that is asked for", so only their
/// ratios matter; that unit is the gain of more repetitions. A plan takes the step of the largest gain a
/// second.
struct SamplingGains {
  // --- sizes that were not measured yet ---

  /// Of a target's first size, for a target of weight 1: nothing at all is known of it.
  double first = 400;
  /// Times `first`, for streams: without a stream nothing tells what overlaps.
  double first_stream = 6;
  /// Times the gain, for streams between the largest affordable size and the smallest, until both are known.
  double smaller_stream = 1e-3;
  /// Per factor of two beyond the measured sizes, where costs would be extrapolated.
  double range = 60;
  /// Times the start-up's share of the largest measured cost, at most 1 in all: of `range`, a part that is
  /// the smaller the surer it is that what lies beyond is hardly anything but bytes.
  double startup_counts = 5;
  /// Per factor of two from the nearest measured size, between measured ones: what the fit does not explain
  /// around there times this.
  double between = 5;
  /// Of `between`, where the fit explains everything and the cost doubles or more between the neighbours.
  double smooth_share = 0.15;
  /// Factors of two that count at most, of a distance from measured sizes.
  double most_octaves = 6;
  /// Difference between two neighbours' departures from the guessed line, in logarithms, from which a cost is
  /// held to bend between them.
  double straight = 0.1;
  /// What a fit leaves unexplained counts so many times the width that is asked for at most.
  double most_unexplained = 3;

  // --- more repetitions of a measured size ---

  /// Times the gain, for streams: what they cost, all plans of many messages rest on.
  double stream_narrow = 8;
  /// Relative half width of a median that is known from one repetition, or from one visit.
  double unknown_width = 0.1;
  /// Times the width that is asked for: a wider median gains no more.
  double widest = 10;
  /// Of the budget: visits of a size are so far apart, while there is something else to do.
  double visits_apart = 0.1;
  /// So many sizes that take about as long (within a factor of four) tell how far visits differ.
  std::size_t like_sizes = 3;

  // --- how long a visit takes ---

  /// Of the budget, at most, unless a visit is a single repetition.
  double visit_share = 0.05;
  /// Of more repetitions of a size, at most.
  Seconds longest_narrowing{0.25};
  /// Streams of so long in all are enough repetitions for a first visit.
  Seconds stream_time{40e-3};
  int fewest_streams = 2, most_streams = 3;  ///< repetitions of a stream's first visit
  /// A first visit of short operations lasts so long: the median of a few of them among ranks that share
  /// processors scatters by several per cent.
  Seconds alone_time{12e-3};
  int most_alone = 8;  ///< repetitions of it
  /// Messages that follow each other without a command in between fill so much time.
  Seconds back_to_back_time{10e-3};

  // --- order ---

  /// Every target gets the sizes that a fit may rest on (enough_sizes.h) before any gets more.
  bool first_sizes = true;
  /// Of the budget, what these sizes may take in all if each visit takes as long as the longest.
  double first_sizes_share = 1;
};

}  // namespace commtune::probes
