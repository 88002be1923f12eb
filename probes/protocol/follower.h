#pragma once
// One rank's part in what is measured: does what a command says, on the executor's communicator and roads,
// and reports when things began and ended on this rank's clock.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/base/task.h"
#include "executor/collectives/library_queue.h"
#include "executor/memory/pool.h"
#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/road.h"
#include "executor/session/joint_library.h"
#include "executor/transport/communicator.h"
#include "probes/load/compute_step.h"
#include "probes/load/message_memory.h"
#include "probes/protocol/command.h"
#include "probes/protocol/tournament.h"

namespace commtune::probes {

/// Everything runs on the thread that calls perform(), which is the communication thread.
class Follower {
 public:
  /// chunk  longest transfer of a pipelined road; 0: as the transport likes
  explicit Follower(Communicator& communicator, Bytes chunk = {});
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Waits for the start, measures, and reports. A rank that waits longer than the command's limit reports
  /// that and for whom; what it was in the middle of is left as it is, and no further command may be
  /// performed. throws  Error{kPeerLost} from the transport, Error{kConflict} when a sum is wrong
  FollowerReport perform(const Command& command);

  /// Why the last command that could not be carried out here could not.
  const std::string& why_unavailable() const { return why_unavailable_; }

 private:
  /// Messages of one command on their way through this rank.
  struct Flow {
    const Command& command;
    RoadSettings settings;
    std::vector<Nanoseconds> ends;  ///< by message
    int next = 0;                   ///< message to start
    std::uint32_t base = 0;         ///< tag number of message 0
  };
  /// What a command has under way. Outlives a command that was given up, since transfers point into it.
  struct Job {
    Job(const Command& given, const Peers& peers, const TransferTraits& traits);
    const Command command;
    const HostLayout hosts;  ///< of the command's workers
    Flow sending, receiving;
    std::unique_ptr<Server> server;   ///< if this rank is one
    LibraryQueue* library = nullptr;  ///< that its road sums by
    Group streaming;                  ///< kHeadOfLine: empty once the stream is under way
    Nanoseconds urgent_start{0};      ///< kHeadOfLine
    std::vector<Task> tasks;          ///< last: destroyed before what they use
  };

  void pace(const Command& command);
  void measure(const Command& command, FollowerReport& report);
  void measure_operation(const Command& command, FollowerReport& report);
  void measure_head_of_line(const Command& command, FollowerReport& report);
  void measure_pair(const Command& command, FollowerReport& report);
  template <typename Work>
  void measure_on_memory(const Command& command, std::size_t room, Places places, const Work& work,
                         FollowerReport& report);
  void measure_memory(const Command& command, FollowerReport& report);
  void measure_casts(const Command& command, FollowerReport& report);
  void measure_launch(const Command& command, FollowerReport& report);
  void measure_host_copies(const Command& command, FollowerReport& report);
  void measure_steps(const Command& command, FollowerReport& report);
  void measure_traffic(const Command& command, FollowerReport& report);

  std::unique_ptr<ComputeStep> make_step(const Command& command) const;
  Task run_message(Job& job, int number, Buffer data);
  Task run_messages(Job& job, std::size_t slot);
  Task run_urgent(Job& job);
  Task run_in_stream(Job& job, int number);
  bool takes_part(const Command& command) const;
  /// Sets up servers for the job's messages where its road has any, and ends them afterwards.
  void open_servers(Job& job);
  void close_servers(Job& job, Deadline until);
  void open_server(Job& job, const ParameterServer& road);
  void close_server(Job& job, const ParameterServer& road, Deadline until);
  Task send_messages(Flow& flow, int to, std::size_t slot);
  Task receive_messages(Flow& flow, int from, std::size_t slot);
  Task round_trips(Flow& flow, int with);
  Task echoes(Flow& flow, int with);

  Job& new_job(const Command& command);
  /// Source and destination in which this rank takes part, by the command's pairing.
  std::optional<Pair> pair_of(const Command& command) const;
  void check_sums(const Command& command);
  /// The library that the command's road sums by; nullptr: none.
  LibraryQueue* library_of(const Command& command);
  /// All ranks call it, also those that have no part in the command.
  void join_library(const Command& command);
  void wait_for(const AsyncOperation& operation, Deadline until);
  /// Starts the job's tasks and makes progress until all are done.
  void finish(Job& job, Deadline until);
  /// Makes progress until it is so; throws GaveUp at the deadline.
  void progress_until(const std::function<bool()>& done, Deadline until);
  void wait_for_start(Nanoseconds start);

  Communicator& communicator_;
  double pace_ = 0;                 ///< of the last command, bytes per second
  std::pair<Road, int> paced_for_;  ///< its road and number of workers
  const TransferTraits traits_;
  Scratch scratch_;
  std::vector<int> first_rank_;  ///< of each host
  MessageMemory memory_;
  std::optional<Allocation> host_block_;              ///< once a command copies between host and GPU
  JointLibrary library_;                              ///< once a command needs it
  std::optional<std::pair<int, NcclTuning>> joined_;  ///< the library's ranks, and what it was told
  std::optional<LibraryQueue> collectives_;
  std::string why_unavailable_;
  std::unique_ptr<Job> job_;
};

}  // namespace commtune::probes
