#pragma once
// How messages pass between hosts whose servers take them whole. MODEL.md section 3.2.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "perfmodel/simulate/event_heap.h"
#include "perfmodel/simulate/in_flight_message.h"

namespace commtune {

/// Every ordered pair of hosts has a connection, and all are equally fast: a message's pushes share the card
/// of its server's host, as its answers do. One from host a to host b carries a's pushes to the servers on b,
/// and the answers of a's servers to the workers on b, the most urgent first. So the messages of two servers
/// are in each other's way on the two connections between their hosts, and nowhere else.
///
/// Answers leave a chunk's time after the last host began to push the message, and none of them has arrived
/// sooner than that after the last push.
///
/// A simulation may look at some of a message's hosts, which then stand for the others: of all connections
/// the last one says when a message is there, and of few that is sooner. Hosts that have servers are evenly
/// among the others.
class Connections {
 public:
  /// What a message takes.
  struct TransferCost {
    double time = 0;    ///< seconds for which each stage keeps each of its connections
    double chunk = 0;   ///< seconds of it that the first chunk takes
    double lag = 0;     ///< seconds from the end of a stage on a connection until it has arrived
    double before = 0;  ///< seconds from its start until its pushes may leave
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Hosts {
    std::size_t all = 1;           ///< that exchange messages, at least one
    std::size_t with_servers = 1;  ///< 1 to `all`
    std::size_t peers = 0;         ///< of each, to look at: all others, or an even number
  };

  /// messages  that may be started
  /// held      seconds' worth of bytes that sockets hold, which nothing more urgent overtakes
  /// taken     of a push that is being sent, seconds' worth of bytes that sockets take: it counts as sent.
  ///           kNever: nobody asks
  void reset(const Hosts& hosts, std::size_t messages, double held, double taken);

  /// Seconds for which a stage of a message keeps each connection of its server's host, by what the message
  /// keeps the card of a host with servers on average: TransferCost::time, that is, by an occupancy.
  double time_by_occupancy() const { return time_by_occupancy_; }

  /// A message leaves all hosts for this one of those that have servers.
  void start(std::uint32_t message, std::uint32_t server, const TransferCost& cost, double now);

  /// Moment of the earliest event; infinity if nothing is under way.
  double soonest() { return coming_.soonest(); }
  /// What an event is of.
  struct Event {
    bool sent = false;     ///< half of the hosts have sent their push of the message
    bool arrived = false;  ///< its end is known
    std::uint32_t message = 0;
  };
  /// Handles the earliest event.
  Event handle();

  /// The stages of a message that has arrived; their ends may lie in the future.
  const std::array<StageInterval, 2>& stages(std::uint32_t message) const {
    return messages_[message].stages;
  }

 private:
  struct Message {
    TransferCost cost;
    std::uint32_t host = 0;
    std::uint32_t begun = 0, taken = 0, pushed = 0, answered = 0;  // hosts
    std::array<StageInterval, 2> stages{};
  };
  struct Transfer {
    std::uint32_t message = 0;
    bool answers = false;
    bool begun = false;
    bool taken = false;  // by sockets: all that is left of a push
    double left = 0;     // seconds
  };
  struct Connection {
    std::vector<Transfer> waiting;  // the most urgent last
    Transfer sending;
    bool busy = false, used = false;
    double since = 0;         // moment up to which what is sent has been accounted for
    double until = kNever;    // from then on something more urgent has the connection
    std::uint32_t stamp = 0;  // of its next event
  };
  /// Events of messages, whose numbers follow those of all connections. A connection's event is called off
  /// by a newer stamp.
  static constexpr std::uint32_t kMayAnswer = 0, kTaken = 1, kMayPush = 2;
  std::uint32_t message_event(std::uint32_t message) const {
    return static_cast<std::uint32_t>(hosts_ * peers_) + message;
  }
  std::size_t peer_of(std::size_t host, std::size_t peer) const;
  std::uint32_t connection_from(std::size_t host, std::size_t peer) const;
  std::uint32_t connection_to(std::size_t host, std::size_t peer) const;
  /// Of the hosts, the server's among them, which has nothing to send.
  std::uint32_t half() const { return static_cast<std::uint32_t>((peers_ + 1) / 2); }
  bool has_room(const Connection& connection, const Transfer& transfer, double now) const;
  void push(std::uint32_t number, double now);
  void offer(std::uint32_t number, Transfer transfer, double now);
  static void wait(Connection& connection, const Transfer& transfer);
  void go_on(std::uint32_t number, double now);
  void begin(Transfer& transfer, double now);
  Event let_answer(std::uint32_t number, double now);
  Event pass(std::uint32_t number, double now);
  bool ends(const Transfer& transfer, double now);
  void send_next(std::uint32_t number, double now);

  std::size_t place_of(std::size_t server) const { return server * hosts_ / servers_; }
  bool has_servers(std::size_t host) const {
    const std::size_t first_not_before = (host * servers_ + hosts_ - 1) / hosts_;
    return place_of(first_not_before) == host;
  }
  double servers_among_peers() const;

  std::size_t hosts_ = 1, servers_ = 1, peers_ = 0;
  double time_by_occupancy_ = 1;
  double held_ = 0, taken_ = 0;
  std::vector<Message> messages_;
  std::vector<Connection> connections_;  // by host that sends, and peer
  std::vector<std::uint32_t> used_;      // connections that are not as they were made
  EventHeap coming_;
};

}  // namespace commtune
