#pragma once
// What a sampling plan holds a visit to be worth, and how long a visit may take.

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// Gains are in units of "the half width of one median shrinks by the width that is asked for", so only their
/// ratios matter; that unit is the gain of more repetitions. A plan takes the step of the largest gain a
/// second.
///
/// [halved; doubled; removed] is what tests/bench/sampling --random 1 --vary said: by how many per cent the
/// 90th percentile of the errors changed, of operations alone and of streams, and on how many of 24 clusters
/// the mean error fell and rose by more than another seed of the noise changes it. Two more seeds of the
/// noise alone: -7 to +20 %, -4 to +5 %, 3 to 6 fell and 7 to 10 rose. Less than that is nothing. From
/// stream_narrow on, `first`, `first_stream` and `most_octaves` were removed. Those from fewest_streams on
/// were varied with fewest_streams = 1 and most_streams = 2, the others with 2 and 3; their two more seeds of
/// the noise: -3 to -1 %, -6 to -4 %, 8 fell and 9 rose.
struct SamplingGains {
  // --- sizes that were not measured yet ---

  /// Of a target's first size, for a target of weight 1: nothing at all is known of it. At the usual budget
  /// it changes nothing [-4 +4, 6 4; -3 -3, 7 5; -6 +5, 6 4]; of a short one, some targets would get nothing.
  double first = 400;
  /// Times `first`, for streams: without a stream nothing tells what overlaps. Likewise
  /// [-6 +1, 5 5; -3 -3, 3 7; +3 +1, 3 5].
  double first_stream = 6;
  /// Per factor of two beyond the measured sizes, where costs would be extrapolated.
  /// [-6 +3, 5 6; -2 +15, 4 9; +344 +124, 1 22]
  double range = 60;
  /// Times the start-up's share of the largest measured cost, at most 1 in all: of `range`, a part that is
  /// the smaller the surer it is that what lies beyond is hardly anything but bytes.
  /// [+17 +7, 4 7; +5 +8, 1 6; +13 +19, 1 14]
  double startup_counts = 5;
  /// Chunks of an operation from which on the steps of one overlap those of others, and its size shows what a
  /// byte costs. Up to there `startup_counts` is not asked: of a message of two chunks a server answers
  /// nothing before it has half of it, and one of 4 MiB took 10 to 14 % less than a line through 64 and 128
  /// KiB said. [+12 -4, 1 8; 0 +4, 3 5; +9 -7, 4 7]
  double pipelined_chunks = 8;
  /// Per factor of two from the nearest measured size, between measured ones: what the fit does not explain
  /// around there times this. [+8 +8, 1 8; -2 -2, 7 4; +49 +132, 0 21]
  double between = 5;
  /// Of `between`, where the fit explains everything and the cost doubles or more between the neighbours.
  /// Without it nothing would be gained there, and left-over time go into repetitions alone.
  /// [+11 -3, 1 6; +4 +1, 3 5; +5 +3, 2 7]
  double smooth_share = 0.15;
  /// Factors of two that count at most, of a distance from measured sizes: a second size that is far away is
  /// not worth more than another target's first. [+8 +17, 4 8; -1 +6, 2 8; +5 +5, 5 9]
  double most_octaves = 6;
  /// Difference between two neighbours' departures from the guessed line, in logarithms, from which a cost is
  /// held to bend between them. [-2 +1, 7 4; +11 +9, 0 10; +21 +6, 1 11]
  double straight = 0.1;
  /// What a fit leaves unexplained counts so many times the width that is asked for at most.
  /// [+3 +5, 0 9; +8 0, 2 6; +13 0, 2 7]
  double most_unexplained = 3;

  // --- more repetitions of a measured size ---

  /// Times the gain, for streams: what they cost, all plans of many messages rest on.
  /// [+2 +5, 3 6; +14 +5, 1 9; +3 +12, 3 11]
  double stream_narrow = 8;
  /// Relative half width of a median that is known from one repetition, or from one visit. Its value hardly
  /// matters; without any, such a size would never be visited again. [+2 0, 4 4; +9 +2, 5 8; +3 0, 6 5]
  double unknown_width = 0.1;
  /// Of the budget: visits of a size are so far apart, while there is something else to do.
  /// [+1 0, 6 1; +4 +1, 5 6; +9 0, 2 8]
  double visits_apart = 0.1;

  // --- how long a visit takes ---

  /// Of the budget, at most, unless a visit is a single repetition. At the usual budget it changes nothing
  /// [0 +2, 4 7; -3 -2, 5 2; +2 +1, 6 3]; of a short one, the first visits of a slow road would take most.
  double visit_share = 0.05;
  /// Streams of so long in all are enough repetitions for a first visit. [+2 -2, 2 7; +16 +1, 3 13]
  Seconds stream_time{40e-3};
  /// Repetitions of a stream's first visit. A size more tells more than a repetition more: from 2 and 3 to 1
  /// and 2 the 90th percentiles fell by 18 and 20 % on the clusters of --random 1, and by 32 and 26, 42 and
  /// 40, 20 and 25 % on those of 2, 3 and 4, which nothing was chosen on.
  /// [fewest: +14 +18, 8 7 doubled; most: -8 -1, 6 6; +15 +3, 2 11; +13 +12, 2 11]
  int fewest_streams = 1, most_streams = 2;
  /// Messages and operations that follow each other without a command in between fill so much time. Of
  /// messages likewise [-9 -6, 9 6; -1 +1, 4 7; -3 -1, 5 6]. Of operations less would do on these clusters,
  /// which know no ranks that share processors and find their places only in some milliseconds.
  Seconds back_to_back_time{10e-3};

  // --- what plans need (SamplingPlan::weigh) ---

  /// Of the weight of all roads together, the part that goes to roads by what plans need of them; the rest
  /// stays where it is without plans.
  double needed_share = 0.5;
  /// Factors of two around the sizes of plans' messages that count as well: costs between them are fitted to
  /// sizes on both sides.
  double needed_octaves = 2;

  // --- order ---

  /// Every target gets the sizes that a fit may rest on (enough_sizes.h) before any gets more. Without it
  /// [+20 +22, 5 12], and 6 % of the roads stay without enough sizes.
  bool first_sizes = true;
  /// Of the budget, what these sizes may take in all if each visit takes as long as the longest.
  /// [+6 +5, 6 8; -4 +1, 4 5; +24 +21, 2 11]
  double first_sizes_share = 1;
  /// Of the time for visits: where first sizes and links take more, an operation's third size is the largest
  /// that it can afford, since larger ones would not follow. With half of the usual budget (--budget 0.5) the
  /// 90th percentile of the errors of operations alone is 14 to 24 % less than without it on the clusters of
  /// --random 1 to 4, on which the value was chosen, and 20 to 27 % on those of 5 to 7; streams' 3 to 17 and
  /// 12 to 16 %. With the usual budget it is 5 % less to 5 % more.
  double short_of_time = 0.3;
};

}  // namespace commtune::probes
