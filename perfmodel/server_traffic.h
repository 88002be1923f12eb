#pragma once
// The simulator's network with parameter servers: pushes and answers that share links by urgency.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "perfmodel/compute_clock.h"
#include "perfmodel/flat_cost.h"
#include "perfmodel/flight.h"
#include "perfmodel/parcel.h"

namespace commtune {

/// Messages that are pushed to servers and come back, each of them under its number in the plan's order of
/// urgency. A push keeps the channel for its part of the message's occupancy; half of what the message alone
/// takes longer than that later (with a channel each: what its stage takes longer) the sum leaves, as an
/// answer, for which the same holds. Sockets take the most urgent that there is, in parts, as servers and
/// workers send chunk by chunk, but as much as they hold ahead of the channel (RoadCost::backlog) leaves in
/// the order in which they took it. A server that gets whole messages (RoadCost::in_turn) takes, and gives,
/// one after the other, however fast the channel, which is that of all servers together.
class ServerTraffic {
 public:
  struct Arrival {
    std::uint32_t urgency = 0;
    Passage push;    ///< from its first byte's leaving until the servers have it
    Passage answer;  ///< from the sum's first byte's leaving until every worker has it
  };

  /// The road must live until the next reset.
  /// most  bytes that will be under way
  void reset(const FlatRoad& road, std::size_t messages, std::uint64_t credit, std::uint64_t most);

  /// Starts a message at the moment of the last advance().
  void start(std::uint32_t urgency, const Parcel& parcel, ComputeClock& clock);

  /// Whether sockets have taken so much of the pushes of those started that no more than the credit is left.
  bool credit_allows() const { return !limited_ || pushing_ == 0 || over_credit() <= kRounding; }

  /// The moment of what happens next; infinity when nothing is under way. The credit counts as something.
  double next() const;

  /// Moves on to `now`, no later than next().
  void advance(double now, ComputeClock& clock);
  /// What all that has brought in since the last forget_arrived(), whenever it is there.
  const std::vector<Arrival>& arrived() const { return arrived_; }
  void forget_arrived() { arrived_.clear(); }

  /// Time during which at least one message was under way.
  double under_way() const { return under_way_; }
  /// Of the busier channel: how long it was kept for bytes alone.
  double bytes_time() const { return *std::max_element(bytes_time_.begin(), bytes_time_.end()); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kRounding = 0.5;  // bytes
  struct Message {
    double bytes = 0, unsent = 0;
    double rate = 0;                      // bytes of its push a second
    double left = 0;                      // of its push or its answer, on the channel
    double push = 0, answer = 0;          // how long they keep it
    double push_lag = 0, answer_lag = 0;  // how much later they are there
    double from = kNever;                 // the first byte of what it sends left
    Passage pushed;
    std::uint32_t server = 0;
    bool answering = false;
  };
  struct Channel {
    RankSet queue;
    double free = 0;           // when all that the sockets hold has left
    std::uint32_t served = 0;  // what they take, as fast as others leave:
    double ends = kNever;      // when they have all of it, if nothing more urgent comes
    bool full() const { return ends < kNever; }
  };
  /// An answer that is being made ready.
  struct Coming {
    double at = 0;
    std::uint32_t urgency = 0;
    bool operator<(const Coming& other) const { return at > other.at; }  // a heap keeps the largest on top
  };

  double over_credit() const { return unsent_ - credit_; }
  std::size_t channel_of(const Message& message) const { return message.answering && !shared_ ? 1 : 0; }
  void price(Message& message, const Parcel& parcel);
  double after_turn(const Message& message, std::size_t channel, double left, double kept);
  void come(std::uint32_t urgency);
  void spend(double time);
  void take(Channel& channel, Message& message, double time);
  void taken(Channel& channel);
  void serve(std::size_t number, ComputeClock& clock);

  const FlatRoad* road_ = nullptr;
  bool shared_ = true;
  std::size_t used_ = 1;  // channels
  double backlog_ = 0, now_ = 0;
  std::vector<Message> messages_;    // by urgency
  std::vector<double> server_free_;  // per server in turn and channel
  std::array<Channel, 2> channels_;
  std::vector<Coming> coming_;
  std::vector<Arrival> arrived_;
  std::size_t pushing_ = 0, travelling_ = 0;  // messages
  double unsent_ = 0, credit_ = 0;            // bytes
  bool limited_ = false;                      // whether the credit can ever be short
  double under_way_ = 0, under_way_until_ = 0;
  std::array<double, 2> bytes_time_{};
};

}  // namespace commtune
