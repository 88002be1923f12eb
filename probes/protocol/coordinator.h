#pragma once
// The two sides of a probe: the coordinator on rank 0 says what all ranks do next and collects what they
// report; the followers do it until they are told to stop.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/transport/communicator.h"
#include "perfmodel/base/error.h"
#include "probes/protocol/clock_table.h"
#include "probes/protocol/command.h"
#include "probes/protocol/follower.h"

namespace commtune::probes {

/// What a rank says of itself before anything is measured.
struct Hello {
  /// own_facts() of its host, from the first rank there, and end_facts().
  std::map<std::string, std::string> facts;
  std::string conflict;  ///< why it must not probe now; empty if it may
};

/// How long to wait for ranks that are silent.
struct Patience {
  Seconds timeout{10};  ///< beyond the expected duration of a command
  Seconds grace{2};     ///< further time to find out who else is silent
};

class Coordinator {
 public:
  /// chunk  as Follower's; the same on all ranks
  Coordinator(Communicator& communicator, Patience patience, Bytes chunk = {});

  /// The greetings of all ranks, this one's included, by rank. Throws Error{kTimeout} naming those missing.
  std::vector<Hello> greetings(const Hello& own);

  /// Estimates how far each rank's clock is ahead from `rounds` round trips each.
  void compare_clocks(int rounds);

  /// Has all ranks perform the command at the same moment.
  ///
  /// expected  duration, for the time limit
  /// what      is measured, for errors
  /// returns   reports by rank with all moments (not durations) moved to this rank's clock
  /// throws    Error{kTimeout} naming the ranks that are silent, or who waited for whom;
  ///           Error{kUnavailable} when the transport lacks the operation: the next command may be given
  std::vector<FollowerReport> perform(Command command, Seconds expected, const std::string& what);

  /// Sends every follower home: without a reason the probe has ended well; otherwise they throw an Error with
  /// it. Waits a moment for the messages to leave; never throws.
  void stop(const std::string& reason) noexcept;

  const ClockTable& clocks() const { return clocks_; }

 private:
  struct Incoming {
    std::vector<std::byte> bytes;
    std::size_t length = 0;
    Nanoseconds returned{0};
    bool done = false;
  };
  Task receive_into(Incoming& incoming, int from, Tag tag);
  /// Receives one message of each follower; returns when all are there or at the deadline.
  void start_receiving(Tag tag);
  bool all_received() const;
  void progress_until_received(Deadline until);
  std::vector<int> missing() const;
  Error silence(const std::string& what, Seconds waited) const;
  void exchange(const std::vector<Command>& commands, FollowerReport& own, Seconds limit,
                const std::string& what);
  Nanoseconds lead() const;

  Communicator& communicator_;
  Follower follower_;
  Patience patience_;
  ClockTable clocks_;
  std::uint64_t sequence_ = 0;
  double lead_factor_ = 1;         ///< grows when commands arrive after the moment that they name
  std::vector<Command> outgoing_;  ///< by rank; sends point into it
  std::vector<Command> farewell_;  ///< the same, for stop(): what went before may still be under way
  Group sends_;
  std::vector<Incoming> incoming_;  ///< by rank
  std::vector<Task> receiving_;
};

/// What every other rank runs: greets, then performs commands until it is told to stop.
/// throws  Error with the coordinator's reason, Error{kTimeout} when rank 0 is silent
void follow(Communicator& communicator, const Hello& own, Patience patience, Bytes chunk = {});

}  // namespace commtune::probes
