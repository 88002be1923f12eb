#pragma once
// The simulator's network: messages that share cards turn by turn, by urgency as far as sockets let them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "perfmodel/compute_clock.h"
#include "perfmodel/flat_cost.h"
#include "perfmodel/parcel.h"
#include "perfmodel/plan.h"
#include "perfmodel/rank_set.h"

namespace commtune {

/// Messages under way, each under its number in the plan's order of urgency. A message takes turns: a push
/// and an answer, or a collective's rounds (RoadCost::rounds). In each it keeps the channel for a part of its
/// occupancy, and what it takes longer than that when it is alone passes after its turns, in equal parts
/// (with a channel each: what its stage takes longer). In between others have theirs, so that several
/// messages under way at once may all end when the last one does. Sockets take the most urgent that there is,
/// in parts, as servers and workers send chunk by chunk, but as much as they hold ahead of the channel
/// (RoadCost::backlog) leaves in the order in which they took it. A server that gets whole messages
/// (RoadCost::in_turn) takes, and gives, one after the other, however fast the channel, which is that of all
/// servers together.
class Traffic {
 public:
  struct Arrival {
    std::uint32_t urgency = 0;
    Passage reduce;      ///< from its first byte's leaving until all are summed
    Passage distribute;  ///< from the sum's first byte's leaving until every worker has it
  };

  /// The road must live until the next reset.
  /// most  bytes that will be under way
  void reset(const FlatRoad& road, std::size_t messages, std::uint64_t credit, std::uint64_t most);

  /// Starts both stages of a message at the moment of the last advance().
  void start(std::uint32_t urgency, const Parcel& parcel, ComputeClock& clock);
  /// Starts one stage of a message, under a number of its own. Of the first its arrival is told when it has
  /// come: something waits for it.
  void start(std::uint32_t urgency, const Parcel& parcel, Stage stage, ComputeClock& clock);

  /// Whether sockets have taken so much of those started (through servers: of their pushes) that no more than
  /// the credit is left.
  bool credit_allows() const { return !limited_ || sending_ == 0 || over_credit() <= kRounding; }

  /// What ends an advance() before the moment that it is given.
  struct Stops {
    bool at_credit;  ///< a message waits until the credit allows it
    bool at_event;   ///< whatever happens may move that moment
  };
  /// Moves on to `until`, or only to where something has arrived or one of `stops` holds, and returns that
  /// moment. Something must be under way if `until` is infinite.
  double advance(double until, Stops stops, ComputeClock& clock);
  /// What all that has brought in since the last forget_arrived(), whenever it is there.
  const std::vector<Arrival>& arrived() const { return arrived_; }
  void forget_arrived() { arrived_.clear(); }

  /// Time during which at least one message was under way.
  double under_way() const { return under_way_; }
  /// Of the busier channel: how long it was kept for bytes alone.
  double bytes_time() const { return *std::max_element(bytes_time_.begin(), bytes_time_.end()); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kRounding = 1e-3;  // bytes
  struct Message {
    double bytes = 0, unsent = 0;
    double rate = 0;                      // bytes that count as sent in a second of its turns
    double left = 0;                      // of its turn, on the channel
    std::array<double, 2> kept{}, lag{};  // by stage: a turn on the channel, and how much later it is there
    double last_lag = 0;                  // the last turn
    double from = kNever;                 // the first byte of this stage left
    std::array<Passage, 2> passed;        // by stage
    std::uint32_t server = 0;
    int turn = 0;
    int first = 0;      // turns of the first stage
    int counted = 0;    // turns until the credit no longer counts it
    int turns = 0;      // all of them
    bool told = false;  // its arrival when it has come
    std::size_t stage() const { return turn < first ? 0 : 1; }
    bool ends_stage() const { return turn + 1 == first || turn + 1 == turns; }  // with the turn that it has
  };
  struct Channel {
    RankSet queue;
    double free = 0;           // when all that the sockets hold has left
    std::uint32_t served = 0;  // what they take, as fast as others leave:
    double since = 0;          // from this moment on; what they have taken before is booked
    double ends = kNever;      // when they have all of it, if nothing more urgent comes
    bool called = false;       // something else may have to be taken first
    bool full() const { return ends < kNever; }
  };
  /// A turn that is being made ready, or the end of a message's last.
  struct Coming {
    double at = 0;
    std::uint32_t urgency = 0;
  };
  /// What comes, the soonest first. Mostly what is put in comes later than all that is there.
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
    std::size_t first_ = 0, end_ = 0;  // of those that have not been taken out
  };
  /// A message as it starts. Most have the size of the one before, and so its costs.
  struct Priced {
    Message message;
    double copying = 0;
    std::array<double, 2> bytes_time{};
    bool is_of(const Parcel& parcel) const {
      return message.bytes == parcel.bytes && copying == parcel.copying;
    }
  };

  double over_credit() const { return unsent_ - credit_; }
  double credit_moment() const;
  std::size_t channel_of(const Message& message) const { return shared_ ? 0 : message.stage(); }
  static void prepare(Priced& priced, const Parcel& parcel, const Rounds& turns);
  void price(Priced& priced, const FlatCost& cost, double last_share, double copying) const;
  void price_apart(Priced& priced) const;
  Message& put(std::uint32_t urgency, const Priced& priced);
  void begin(std::uint32_t urgency, ComputeClock& clock);
  void pass_alone(std::uint32_t urgency, ComputeClock& clock);
  double after_server(const Message& message, double left);
  void next_turn(std::uint32_t urgency);
  double room_in(const Channel& channel) const;
  void end_turn(Message& message);
  void take(Channel& channel, Message& message, double at, double time);
  void book(Channel& channel);
  void taken(Channel& channel);
  void arrive(std::uint32_t urgency);
  bool due(const Channel& channel) const;
  void take_soonest();
  void serve(std::size_t number, ComputeClock& clock);
  void occupy(std::size_t number, ComputeClock& clock) const;

  const FlatRoad* road_ = nullptr;
  Rounds turns_;
  bool shared_ = true;
  double backlog_ = 0, now_ = 0;
  std::vector<Message> messages_;    // by urgency
  std::vector<double> server_free_;  // per server in turn and channel
  std::array<Channel, 2> channels_;
  ComingQueue coming_;
  std::array<Priced, 2> priced_;  // the last that started; the second: of distributes alone
  std::vector<Arrival> arrived_;
  std::size_t sending_ = 0, travelling_ = 0;  // messages that the credit counts; all of them
  double unsent_ = 0, credit_ = 0;            // bytes
  bool limited_ = false;                      // whether the credit can ever be short
  double under_way_ = 0, under_way_until_ = 0;
  std::array<double, 2> bytes_time_{};
};

}  // namespace commtune
