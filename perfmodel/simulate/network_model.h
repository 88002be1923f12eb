#pragma once
// The simulator's network: how messages under way share the channels of a road. MODEL.md section 3.2.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "perfmodel/cost/flat_cost.h"
#include "perfmodel/plan.h"
#include "perfmodel/simulate/compute_clock.h"
#include "perfmodel/simulate/connections.h"
#include "perfmodel/simulate/in_flight_message.h"
#include "perfmodel/simulate/priority_set.h"

namespace commtune {

/// Messages are named by their place in the plan's order of urgency; 0 is the most urgent.
///
/// Rounds. A message passes its channel in rounds: a push and an answer, or the rounds of a collective
/// (RoadCost::rounds). Each round keeps the channel for an equal part of the stage's occupancy. After each
/// round the message waits for an equal part of what it takes beyond its occupancy (alone - occupancy; where
/// each stage has a channel of its own, the part of that stage). Other messages use the channel meanwhile,
/// so several messages that are under way together may all end when the last one does.
///
/// Order. The channel is given to the most urgent message that has a round to send, and a more urgent one
/// takes it over in the middle of a round, because the executor sends in chunks. Only the bytes that sockets
/// have accepted ahead of the channel (up to RoadCost::head_of_line seconds of them) leave in the order in
/// which they were accepted.
///
/// Servers in turn. Where a message goes whole to one server, or all wait for one host
/// (RoadCost::in_turn), each pair of hosts has connections of its own (Connections) on a shared channel, if a
/// message's stages follow each other by themselves. Where one card is slower than those of other servers, or
/// all ranks are on one host, all wait for that as if every server had a part. Dedicated servers handle one
/// message after the other, however fast the channel is, since the channel is that of all servers together.
/// All workers push to a server at once, so their bytes leave no faster than it takes them: the credit counts
/// what is left of a push, in quarters, until sockets hold the rest of it.
class NetworkModel {
 public:
  /// What may be unsent when another message starts.
  struct Credit {
    std::uint64_t bytes = 0;
    std::uint64_t most = 0;  ///< bytes that will be started in all: at least that never limits anything
    bool varies = false;     ///< each message has its own (set_credit)
  };

  struct Arrival {
    std::uint32_t urgency = 0;
    StageInterval reduce;  ///< from the moment the first byte leaves until all bytes are summed
    StageInterval
        distribute;  ///< from the moment the sum's first byte leaves until every worker has all of it
  };

  /// Empties the network. The road must live until the next reset.
  /// messages  number of messages that will be started
  /// coupled   both stages of each at once
  /// credit    that limits how many may be under way
  /// slows     whether traffic slows compute: what the clock of all calls says (ComputeClock::disturbed)
  void reset(const FlatRoad& road, std::size_t messages, bool coupled, const Credit& credit, bool slows);

  /// The next message to start has a credit of its own. Only where Credit::varies.
  void set_credit(std::uint64_t bytes) { credit_ = static_cast<double>(bytes); }

  /// Starts both stages of a message at the moment of the last advance().
  void start(std::uint32_t urgency, const InFlightMessage& in_flight, ComputeClock& clock);
  /// Starts one stage of a message, at an urgency of its own. The end of a reduce is reported by the
  /// advance() that reaches it, not ahead of time, because the message's distribute waits for it.
  void start(std::uint32_t urgency, const InFlightMessage& in_flight, Stage stage, ComputeClock& clock);

  /// True if the messages under way have at most the credit left to hand to their sockets. Through servers
  /// only the bytes of pushes count.
  bool credit_allows() const { return !limited_ || sending_ == 0 || over_credit() <= kRounding; }

  /// Moves the clock to `until`, or to the earlier moment at which a message arrives, and returns the moment
  /// reached, in seconds. If `until` is infinite, something must be under way.
  /// stops_at_credit  a message waits for the credit: the moment at which it may start is the end too
  double advance(double until, bool stops_at_credit, ComputeClock& clock) {
    return (this->*advance_)(until, stops_at_credit, clock);
  }
  /// Messages whose end is known since the last forget_arrived(). The end may lie in the future.
  const std::vector<Arrival>& arrived() const { return arrived_; }
  void forget_arrived() { arrived_.clear(); }

  /// Time during which at least one message was under way.
  double under_way() const { return under_way_; }
  /// Seconds for which the busier channel was occupied by bytes, start-ups left out.
  double bytes_time() const { return *std::max_element(bytes_time_.begin(), bytes_time_.end()); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kRounding = 1e-3;  // bytes: sums of rounds may miss a message's bytes by that much
  static constexpr int kPushParts = 4;       // in which a server in turn takes a push in
  struct Message {
    double bytes = 0, unsent = 0;
    double rate = 0;                  // bytes that count as sent per second of channel time
    double to_send = 0;               // seconds for which it will still keep the one channel while it counts
    double waits = 0;                 // seconds that it takes beyond those of the channel, alone
    double works = 0;                 // of these, seconds in which hosts work on it
    double left = 0;                  // seconds of channel time that its round still needs
    std::array<double, 2> kept{};     // by stage: seconds for which a round keeps the channel
    std::array<double, 2> lag{};      // by stage: seconds from the end of that until the round has arrived
    std::array<double, 2> end_lag{};  // the same for the stage's last round
    double from = kNever;             // moment at which the first byte of this stage left
    std::array<StageInterval, 2> passed;  // by stage
    std::array<double, 2>
        handling{};            // by stage: of its server, where servers take messages in turn: seconds
    std::uint32_t server = 0;  // that one
    int round = 0;             // number of its current round
    int first = 0;             // number of rounds of the reduce stage
    int counted = 0;           // number of rounds after which the credit no longer counts it
    int rounds = 0;            // number of rounds of both stages
    bool told = false;         // report its arrival when it happens, not as soon as it is known
    int parts_left = 0;        // of its push that a server in turn has yet to take in; 0: none does
    double part_time = 0;      // seconds for which it takes each of them in
    double taken_in = 0;       // moment at which sockets hold what is left of it
    std::size_t stage() const { return round < first ? 0 : 1; }
    bool ends_stage() const { return round + 1 == first || round + 1 == rounds; }  // with the current round
  };
  struct Channel {
    PrioritySet queue;
    double free = 0;           // moment at which the last byte that the sockets hold has left
    std::uint32_t served = 0;  // message whose bytes full sockets accept as fast as others leave
    double since = 0;          // moment up to which its accepted bytes have been accounted for
    double ends = kNever;      // moment at which its round is accepted, if nothing more urgent comes
    bool called = false;       // another message may have to be accepted first
    bool full() const { return ends < kNever; }
  };
  /// A future event of a message: its next round is ready to be sent, or its last round ends.
  struct Coming {
    double at = 0;
    std::uint32_t urgency = 0;
  };
  /// Events by time, the earliest first: a sorted array, because a new event mostly belongs at its end.
  class ComingQueue {
   public:
    void clear() { first_ = end_ = 0; }
    bool empty() const { return first_ == end_; }
    const Coming& soonest() const { return list_[first_]; }
    void pop() {
      if (++first_ == end_) clear();
    }
    void push(const Coming& coming) {
      if (end_ == list_.size()) make_room();
      Coming* const list = list_.data();
      std::size_t place = end_++;
      for (; place > first_ && list[place - 1].at > coming.at; --place) list[place] = list[place - 1];
      list[place] = coming;
    }

   private:
    void make_room();
    std::vector<Coming> list_;
    std::size_t first_ = 0, end_ = 0;  // range of list_ that has not been taken out
  };
  /// A message as it starts, kept because the next one mostly has the same size and so the same costs.
  struct Priced {
    Message message;
    Connections::TransferCost transfers;  // where it passes connections
    double copying = 0;
    std::array<double, 2> bytes_time{};
    bool is_of(const InFlightMessage& in_flight) const {
      return message.bytes == in_flight.bytes && copying == in_flight.copying;
    }
  };

  /// What a simulation has to look at. The inner loop is compiled for each kind, since most need little.
  struct Kind {
    bool limited = true;  ///< the credit may keep messages back
    bool ahead = true;    ///< sockets hold bytes ahead of the channel
    bool apart = true;    ///< each stage has a channel of its own
    bool slows = true;    ///< traffic slows compute
  };
  /// run.operator()<kind>() for a kind that has all that this simulation needs.
  template <typename Run>
  void of_kind(bool slows, const Run& run);

  double over_credit() const { return unsent_ - credit_; }
  double credit_moment() const;
  template <Kind kKind>
  std::size_t channel_of(const Message& message) const {
    return kKind.apart ? message.stage() : 0;
  }
  void prepare(Priced& priced, const InFlightMessage& in_flight, const Rounds& rounds) const;
  void price(Priced& priced, const FlatCost& cost, double last_share, double copying) const;
  void price_apart(Priced& priced) const;
  void price_server(Message& message) const;
  void price_transfers(Priced& priced) const;
  void reset_connections(std::size_t messages);
  double pushed_per_second(const Message& message) const;
  Message& put(std::uint32_t urgency, const Priced& priced);
  void begin(std::uint32_t urgency, ComputeClock& clock);
  void wait_for_others(Message& message) const;
  template <Kind kKind>
  void first_round(std::uint32_t urgency, ComputeClock& clock);
  void pass_alone(std::uint32_t urgency, ComputeClock& clock);
  double after_server(const Message& message, double left);
  template <Kind kKind>
  double advance_to(double until, bool stops_at_credit, ComputeClock& clock);
  void pass_connections(std::uint32_t urgency, ComputeClock& clock);
  double advance_connections(double until, bool stops_at_credit, ComputeClock& clock);
  void note(const Connections::Event& event);
  template <Kind kKind>
  void next_round(std::uint32_t urgency);
  template <Kind kKind>
  double room_in(const Channel& channel) const;
  void end_round(Message& message);
  template <Kind kKind>
  void take(Channel& channel, Message& message, double at, double time);
  template <Kind kKind>
  void account(Channel& channel);
  template <Kind kKind>
  void taken(Channel& channel);
  void wait_for_part(std::uint32_t urgency);
  void arrive(std::uint32_t urgency);
  bool due(const Channel& channel) const;
  template <Kind kKind>
  void take_soonest();
  template <Kind kKind>
  void serve(std::size_t number, ComputeClock& clock);
  void occupy(std::size_t number, ComputeClock& clock) const;

  const FlatRoad* road_ = nullptr;
  Rounds rounds_;
  bool shared_ = true;
  double head_of_line_ = 0, now_ = 0;
  std::vector<Message> messages_;    // by urgency
  std::vector<double> server_free_;  // by dedicated server in turn and stage: moment at which it is free
  Connections connections_;          // of servers in turn on shared cards
  bool connected_ = false;           // over those all messages pass
  std::array<Channel, 2> channels_;
  ComingQueue coming_;
  std::array<Priced, 2> priced_;  // the last message that started, and the last distribute run as a step
  std::vector<Arrival> arrived_;
  std::size_t sending_ = 0, travelling_ = 0;  // messages that the credit counts; all messages under way
  std::size_t unfinished_ = 0;                // of those that it counts, such as still have bytes to send
  double unsent_ = 0, credit_ = 0;            // bytes
  double all_bytes_ = 0;                      // that a credit may be
  double to_send_ = 0;                        // of all messages that the credit counts
  bool limited_ = false;                      // false if the credit covers all bytes and limits nothing
  bool varies_ = false;
  double under_way_ = 0, under_way_until_ = 0;
  std::array<double, 2> bytes_time_{};
  // Of the kind of this simulation.
  double (NetworkModel::*advance_)(double, bool, ComputeClock&) = nullptr;
  void (NetworkModel::*first_round_)(std::uint32_t, ComputeClock&) = nullptr;
};

}  // namespace commtune
