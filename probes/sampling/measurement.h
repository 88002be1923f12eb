#pragma once
// Rank 0's way to a number: has a quantity measured some times and returns seconds; keeps the account of time
// and traffic, and tells the sink how things go.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/options.h"
#include "probes/protocol/coordinator.h"
#include "probes/protocol/tournament.h"
#include "probes/sampling/event_sink.h"
#include "probes/sampling/sampling_plan.h"

namespace commtune::probes {

/// Seconds of one pair of a round, or of one end.
struct PairTimes {
  Pair pair;  ///< source and destination ranks
  std::vector<double> seconds;
};

/// All-reduces of one size that keep a road busy.
struct Traffic {
  Road road;
  int workers = 0;
  Bytes size;
  int in_flight = 1;
  int messages = 1;    ///< in all
  Seconds expected{};  ///< of all of them

  /// Of a message of it, with compute steps beside it or not.
  Quantity quantity(bool computing) const;
  /// Bytes that a rank sends, at most.
  Bytes sends() const { return Bytes{2 * size.count * static_cast<std::uint64_t>(messages)}; }
};

class Measurement {
 public:
  /// hosts  of the ranks; the budget runs from construction
  Measurement(Coordinator& coordinator, std::vector<std::string> rank_hosts, const ProbeOptions& options,
              Seconds budget, EventSink& sink);

  /// Operations from now on run as a plan would run them: no rank sends faster than a link carries.
  /// bytes_per_second  0: no limit
  void set_pace(double bytes_per_second) { pace_ = bytes_per_second; }

  /// Repetitions of a visit, the warm-up not among them. Ends early when the budget is spent or the sink asks
  /// for it, but has one time at least.
  std::vector<double> measure(const Visit& visit);

  /// All pairs of a round between hosts at once, or one pair alone: one-way times of `count` small messages,
  /// or time per message of a stream of `messages`, by the faster of two such streams (the first warms up)
  /// and the faster of two of `in_flight` messages.
  std::vector<PairTimes> latencies(Pairing pairing, int round, const Pair& pair, Bytes size, int count);
  std::vector<PairTimes> streams(Pairing pairing, int round, const Pair& pair, Bytes size, int in_flight,
                                 int messages);

  /// Durations of compute steps, per rank.
  std::vector<std::vector<double>> steps(StepKind kind, int steps);
  /// The same while traffic keeps the network busy.
  std::vector<std::vector<double>> busy_steps(StepKind kind, const Traffic& traffic);
  /// Seconds of the traffic by its messages, with compute steps beside it or not.
  double message_seconds(const Traffic& traffic, std::optional<StepKind> beside);

  /// How long a push, or an answer, of a most urgent message waits while `in_flight` others of its size pass
  /// the servers, in seconds: half of what it takes longer than alone.
  double head_of_line(const Quantity& quantity, Bytes size, Seconds expected);
  /// Whether traffic for that, behind so many messages, is left.
  bool may_measure_head_of_line(Bytes size, int ahead) const;

  Seconds elapsed() const;
  Seconds left() const { return budget_ - elapsed(); }
  Bytes traffic() const { return traffic_; }
  std::optional<Bytes> traffic_left() const;
  bool stop_requested();
  void show(const std::string& what);  ///< to the sink, if it was not told anything lately
  void tell(const std::string& what);  ///< to the sink

 private:
  Command command_for(const Visit& visit) const;
  Command command_of(const Traffic& traffic, StepKind steps) const;
  /// Of a quantity that is_back_to_back().
  std::vector<double> in_one_command(Command command, const Visit& visit, const std::string& what);
  /// Of messages that are under way together.
  std::vector<double> streamed(Command command, const Visit& visit, const std::string& what);
  /// Seconds of one message, with its part of what a command costs; 0 where there is no warm-up.
  Seconds warm_up(const Command& command, const Visit& visit, const std::string& what);
  std::vector<Pair> pairs_of(Pairing pairing, int round, const Pair& pair) const;

  Coordinator& coordinator_;
  std::vector<std::string> rank_hosts_;
  std::vector<int> first_rank_;  ///< of each host
  const ProbeOptions& options_;
  Seconds budget_;
  EventSink& sink_;
  Deadline began_;
  Deadline shown_;
  Bytes traffic_;
  double pace_ = 0;  ///< bytes per second
  bool stopped_ = false;
};

}  // namespace commtune::probes
