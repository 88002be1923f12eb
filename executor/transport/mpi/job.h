#pragma once
// The job that mpirun (or srun) started, as Open MPI knows it: what transports are made of or introduced by.

#include <memory>

#include "executor/transport/bootstrap/bootstrap.h"

namespace commtune {

/// Open MPI from its start (MPI_Init) to its end (MPI_Finalize, which waits for the other ranks). Once in a
/// process: the library cannot be started twice.
class MpiJob final : public Bootstrap {
 public:
  /// Joins; alone a process is a job of one rank. Sets those of Open MPI's own parameters that its transport
  /// was measured to be fastest with and nobody has set in the environment (the table in job.cc), and
  /// connects all ranks. throws  Error{kUnavailable} when the library cannot start or lacks thread support
  MpiJob();
  ~MpiJob() override;

  const Peers& peers() const override { return peers_; }
  std::vector<std::byte> all_gather(std::span<const std::byte> own, Deadline until) override;
  void abort(std::string_view why) noexcept override;

  /// After a failure peers may be gone: the destructor does not wait for them.
  void give_up() noexcept { given_up_ = true; }
  bool given_up() const noexcept { return given_up_; }

 private:
  void find_peers();
  void connect_all();
  void await_all() noexcept;

  /// Leaves all ranks' in received_. own  as many bytes as the others'
  void gather_equal(std::span<const std::byte> own, Deadline until);

  Peers peers_;
  std::vector<std::byte> sent_, received_;  // here, as the library may still use them when time is up
  bool given_up_ = false;
};

/// Joins the job. Throws as MpiJob() does.
/// returns  shared by the transports that are made of it and by whoever makes them: the last one to go leaves
std::shared_ptr<MpiJob> join_mpi_job();

}  // namespace commtune
