#pragma once
// What is known of one cost as a function of size, and how long measuring more of it will take.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "perfmodel/base/units.h"
#include "probes/sample.h"
#include "probes/sampling/size_times.h"

namespace commtune::probes {

/// In Quantity::in_flight of a target: as many as streamed_at_once() says for the size.
inline constexpr int kStreaming = 0;

/// A cost as a function of size that shall be known.
struct Target {
  Quantity quantity;    ///< in flight 1, or kStreaming
  double weight = 1;    ///< how much it matters beside the others
  Bytes smallest;       ///< of the sizes worth measuring
  Bytes largest;        ///< of the same
  double sent = 1;      ///< bytes that the busiest rank sends, per byte of a message
  Seconds startup{};    ///< guess of the cost of an empty message, before anything is known
  Seconds latency{};    ///< guess of the time that an empty message alone takes, which a stream has to hide
  SecondsPerByte beta;  ///< guess of the time per byte
};

/// A target with what was measured of it.
struct TargetState {
  struct Point {
    SizeTimes times;
    int at_once = 0;  ///< messages under way: more of them would be another quantity
  };

  Target target;
  std::map<Bytes, Point> points;  ///< measured sizes
  /// Of sizes whose streams were seen to hide too little, and are to be measured again: messages under way.
  std::map<Bytes, int> deeper;
  bool visited = false;     ///< in this session
  std::vector<Bytes> grid;  ///< sizes that may be measured
  /// |residual| / measured of the fit so far, of sizes whose repetitions can be trusted.
  std::map<Bytes, double> residual;
  /// The same of all sizes: what one visit did not share with the others may be its moment's.
  std::map<Bytes, double> unexplained;
  /// What plans need of it; absent: they were not asked.
  struct Need {
    double weight = 0;        ///< of sizes that plans' messages have
    Bytes smallest, largest;  ///< those sizes
  };
  std::optional<Need> need;

  bool streams() const { return target.quantity.in_flight == kStreaming; }
  /// Whether a fit may rest on the measured sizes (enough_sizes.h).
  bool has_enough_sizes() const;
  /// Whether the measured sizes and this one span what a fit rests on; true where nothing was measured.
  bool spans_with(Bytes size) const;

  /// Seconds of one message, from what was measured or else from the guesses.
  double message_time(Bytes size) const;
  /// Seconds of one of many in one command: there and back, where it is a message.
  double back_to_back_time(Bytes size) const;
  /// Seconds of one repetition, which begins with a command.
  double repetition_time(Bytes size, Seconds overhead) const;

  /// Messages of a stream that are under way together.
  int at_once(Bytes size) const;
  /// Of both streams of a repetition.
  int stream_messages(Bytes size) const;

  /// The first messages of a kind find their way cold, and so does each first stream of a size, for which
  /// more memory is laid out; larger ones must open the connections' windows.
  bool warms_up(Bytes size) const;

  /// Times of one visit of a size; `left` of the budget at its begin.
  /// returns  all times of this size and as many under way
  SizeTimes record(Bytes size, int under_way, std::span<const double> seconds, Seconds left);
  /// What an earlier session measured.
  void know(Bytes size, Point known);
  /// Finds what a fit with as many pieces as the data support leaves unexplained at each size.
  void refit();

 private:
  void ask_for_deeper(Bytes size);
};

}  // namespace commtune::probes
