#include "tests/gpu/gpu_ranks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/transport/tcp/tcp.h"
#include "tests/executor/forked_ranks.h"

namespace commtune::tests {
namespace {

constexpr unsigned kRankSeconds = 100;

/// Several ranks on one GPU: NCCL takes each for a host of its own, and few of its blocks leave room for the
/// other ranks', which have to run at the same time.
void set_nccl_environment(int rank) {
  const std::string host = "commtune-rank-" + std::to_string(rank);
  setenv("NCCL_HOSTID", host.c_str(), 0);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_NET", "Socket", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
  setenv("NCCL_MAX_CTAS", "2", 0);
}

std::string be_rank(const std::shared_ptr<Bootstrap>& bootstrap,
                    const std::function<void(Transport&, Memory&)>& body) {
  alarm(kRankSeconds);
  const int rank = bootstrap->peers().rank;
  set_nccl_environment(rank);
  const auto memory = make_gpu_memory(rank % gpu_count());
  const auto transport = make_tcp_transport(bootstrap);
  body(*transport, *memory);
  return ::testing::Test::HasFailure() ? "an expectation failed" : "";
}

}  // namespace

std::string why_no_gpu_ranks() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string why = why_no_gpu();
    static_cast<void>(!write(ends[1], why.data(), why.size()));
    std::_Exit(0);
  }
  close(ends[1]);
  std::string why;
  std::array<char, 512> text{};
  for (ssize_t n = 0; (n = read(ends[0], text.data(), text.size())) > 0;)
    why.append(text.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return why;
}

std::vector<std::string> ends_of_gpu_ranks(int n, const std::function<void(Transport&, Memory&)>& body) {
  std::vector<std::string> texts;
  std::fflush(nullptr);  // else each rank would write it once more
  const auto rank = [&](const std::shared_ptr<Bootstrap>& bootstrap) { return be_rank(bootstrap, body); };
  for (const RankEnd& end : on_forked_ranks(n, rank, ForkedHosts::kOne)) {
    if (WIFSIGNALED(end.status)) {
      texts.push_back("killed by signal " + std::to_string(WTERMSIG(end.status)));
    } else if (end.status != 0 && end.said.empty()) {
      texts.push_back("ended with status " + std::to_string(WEXITSTATUS(end.status)));
    } else {
      texts.push_back(end.said);
    }
  }
  return texts;
}

void on_gpu_ranks(int n, const std::function<void(Transport&, Memory&)>& body) {
  const std::vector<std::string> ends = ends_of_gpu_ranks(n, body);
  for (std::size_t rank = 0; rank < ends.size(); ++rank)
    EXPECT_EQ(ends[rank], "") << "rank " << rank << " of " << n;
}

}  // namespace commtune::tests
