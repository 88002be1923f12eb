#pragma once
// Parameter servers: workers push slices of a message, servers sum them and send the sum back (Li et al.,
// OSDI 2014; colocated as in BytePS, Jiang et al., OSDI 2020). Synchronous: a sum is over all workers.
//
// Placement: server s is worker (first + s) mod N's rank when colocated (in the worker's own communication
// thread, so that a rank's slice for its own server never leaves the process), rank N+s when dedicated.
// Assignment: kEven cuts each message into S slices on element boundaries; kHashed gives message i whole to
// the server that the plan names for it, or to server i mod S.
// Local sum: with LocalSum::kFirst what is said here of a message holds for each host's part of it
// (pushers.h, local_sum.h).
//
// A slice travels in chunks. A server adds chunks in rank order whatever order they arrive in, so that the
// result is deterministic; what comes early is kept. As soon as a chunk's sum is complete it goes back to
// every worker, so that pulls overlap with the pushes still to come, within one message as between messages.
//
// Bytes on the wire per message of m bytes, one direction: a worker sends m (dedicated) or m(S-1)/S (one of S
// colocated), a server sends N m/S (dedicated) or (N-1)m/S. Steps: 2, whatever N.
//
// Tags: a push carries the message's number on TagSpace::kReduce, and a server takes pushes in whatever order
// each worker chooses; an answer carries the same number on TagSpace::kDistribute.
//
// Pulls of their own (Plan::pulls): what is said here of a message holds for each stretch that is pushed in
// one message and comes back in one pull. Sums are kept until a worker asks for them, by a push of nothing
// (held_sums.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/roads/parameter_server/held_sums.h"
#include "executor/roads/parameter_server/pull_replies.h"
#include "executor/roads/parameter_server/pushers.h"
#include "executor/roads/road.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Rank of server s.
int server_rank(const ParameterServer& road, int workers, int server);
/// The server that this rank is; -1 when it is none.
int server_of(const ParameterServer& road, int workers, int rank);

/// A server's work on one message in one iteration: from its first chunk's arrival to its last sum's leaving.
struct Served {
  std::uint32_t number = 0;
  Clock::time_point from, until;
};

/// When a server sends a sum back.
enum class Answers {
  kAtOnce,  ///< as soon as it is complete
  kAsked,   ///< to each worker when that has asked for it, too
};

/// One server: a coroutine per remote worker on the communication thread. It runs from start() until every
/// worker has said goodbye.
class Server {
 public:
  /// hosts          of the run; read here only
  /// message_bytes  size of each message by its number; equal on all ranks
  Server(Communicator& communicator, Scratch& scratch, const RoadSettings& settings, const HostLayout& hosts,
         const ParameterServer& road, std::vector<std::size_t> message_bytes,
         Answers answers = Answers::kAtOnce);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// Whether every remote worker has said goodbye and every answer has left. Rethrows what went wrong.
  bool finished();

  /// Keeps a record of the first `limit` messages that are served, for traces.
  void record(std::size_t limit) { log_.reserve(limit); }
  const std::vector<Served>& served() const { return log_; }

  /// The colocated worker's own chunk (of its part), in place of a push: `chunk` is summed from there and,
  /// once the sum is complete, overwritten with the result; then `answered` is released (hold it before).
  /// Ends when nothing more can be added for now.
  Task offer(std::uint32_t number, std::size_t index, Buffer chunk, Group& answered);

  /// The same where sums are asked for: `taken` is released once the chunk has been added.
  Task offer_to_keep(std::uint32_t number, std::size_t index, Buffer chunk, Group& taken);
  /// And the colocated worker asks for a message's chunks (HeldSums::ask_here).
  Task ask_here(std::uint32_t number, std::vector<Buffer> into, Group& answered);

  /// A sum that some workers have contributed to and others have not, for a while: who is being waited for.
  struct Late {
    std::uint32_t number = 0;
    int worker = 0;
    Clock::time_point since;
  };
  std::optional<Late> latest() const;

 private:
  struct Sum;
  /// Where the chunks of a message's parts are in under_way_: part p's from begin[p] to begin[p + 1].
  using PartChunks = std::vector<std::size_t>;
  Task serve(int worker);
  Task arrived(int worker, std::uint32_t number, Scratch::Block block, std::size_t bytes);
  Sum& sum_of(std::uint32_t number, std::size_t index, int part);
  /// Adds what has come and is next, unless somebody does already. Who adds the last sends back what is
  /// complete.
  Task advance(std::uint32_t number, std::size_t index, Sum& sum);
  Task add_up(std::uint32_t number, std::size_t index, Sum& sum);
  Task keep(std::uint32_t number, std::size_t index);
  /// A worker expects a part's chunks in their order, in which sums on a device need not end.
  Task answer_complete(std::uint32_t number, std::size_t part);
  AsyncOperation add_next(Sum& sum);
  void log_chunk(std::uint32_t number);
  PullReply& send_back(std::uint32_t number, Sum& sum);

  Communicator& communicator_;
  Scratch& scratch_;
  const RoadSettings& settings_;
  const ParameterServer road_;
  const int server_;
  const Pushers pushers_;
  const std::vector<std::size_t> message_bytes_;
  std::vector<PartChunks> part_chunks_;                       // [message]
  std::vector<std::vector<std::size_t>> next_chunk_;          // [worker][message], of the worker's part
  std::vector<std::vector<std::unique_ptr<Sum>>> under_way_;  // [message][chunk]
  std::vector<std::vector<std::size_t>> next_answer_;         // [message][part], of the part's chunks
  std::vector<std::unique_ptr<Sum>> idle_sums_;
  PullReplies replies_;
  std::optional<HeldSums> held_;                  // where sums are asked for
  std::vector<Clock::time_point> first_arrival_;  // by message, of the sums under way
  std::vector<std::size_t> complete_chunks_;      // by message
  std::vector<Served> log_;
  std::vector<Task> serving_;
};

/// A worker's side of one message, with a local sum where the road has one (local_sum.h).
/// here  the server in this process; nullptr when there is none
Task push_pull(RoadMessage message, const ParameterServer& road, Server* here);

/// A worker's side of its part of a message: push every slice, take every answer in place.
/// message  its data is the part
Task push_pull_part(RoadMessage message, const ParameterServer& road, Server* here);

/// The two ways of a stretch apart (Answers::kAsked, no local sum): all of it is pushed by the end of
/// `pushes`, and back in place by that of `answers`. They end when nothing more can be started for now.
Task push_stretch(RoadMessage stretch, const ParameterServer& road, Server* here, Group& pushes);
Task pull_stretch(RoadMessage stretch, const ParameterServer& road, Server* here, Group& answers);

/// Tells every remote server that this worker will push no more; each worker, once, after its last message.
Task say_goodbye(Communicator& communicator, const RoadSettings& settings, const ParameterServer& road);

}  // namespace commtune
