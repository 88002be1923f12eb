// NCCL's collectives, and sessions whose gradients lie on a GPU, with several ranks.

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "executor/collectives/registry/libraries.h"
#include "executor/memory/cuda/cuda_memory.h"
#include "executor/session/exchange.h"
#include "executor/session/session.h"
#include "perfmodel/base/error.h"
#include "tests/executor/collectives/library_cases.h"
#include "tests/executor/random_plan.h"
#include "tests/gpu/device_gradients.h"
#include "tests/gpu/gpu_ranks.h"

namespace commtune::tests {
namespace {

using ::testing::HasSubstr;

class NcclTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu_ranks(); !why.empty()) GTEST_SKIP() << why;
  }
};

Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

TEST_P(NcclTest, Conforms) {
  on_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    Communicator communicator(transport, memory);
    const auto tell = [&](const std::string& text) { return broadcast(communicator, text, soon()); };
    const auto library = make_library("nccl", {communicator, tell, soon()}, communicator.size());
    ASSERT_EQ(library->name(), "nccl");
    for (const LibraryCase& test : library_cases()) {
      SCOPED_TRACE(test.name);
      test.body(communicator, *library);
    }
    barrier(communicator, soon());
  });
}

/// One rank's session under one plan after another; all elements are compared.
void train(Transport& transport, Memory& memory, const std::vector<RandomJob>& jobs, Result result) {
  const Profile& profile = jobs.front().profile;
  const int rank = transport.peers().rank;
  const int workers = jobs.front().plan.workers;
  std::unique_ptr<DeviceGradients> gradients;
  if (rank < workers) gradients = std::make_unique<DeviceGradients>(profile, rank);
  SessionOptions options;
  options.memory = &memory;
  options.workers = workers;
  options.result = result;
  options.timeout = Seconds{60};
  options.chunk = Bytes{4096};
  Session session(transport, layout_of(profile), gradients ? gradients->gradients() : Gradients{}, options);
  if (!gradients) return session.serve();
  const TensorRange all{0, static_cast<TensorId>(profile.tensor_count())};
  for (const RandomJob& job : jobs) {
    session.adopt(job.plan);
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t iteration = session.iteration() + 1;
      gradients->write(job.plan, result, iteration);
      session.begin_iteration();
      session.ready(all);
      session.wait(all, Clock::now());
      gradients->expect_result(job.plan, result, iteration);
    }
  }
  session.leave();
}

/// Plans of one profile over NCCL: messages that are fused, cut, prioritised, decoupled, cast.
std::vector<RandomJob> library_jobs(int workers) {
  const Road road = AllReduce{Collective::kLibrary};
  std::vector<RandomJob> jobs{random_job(100 + static_cast<std::uint64_t>(workers), workers, road)};
  jobs.reserve(8);
  for (std::uint64_t seed = 1; seed < 8; ++seed)
    jobs.push_back({jobs.front().profile, random_plan(seed, jobs.front().profile, workers, road)});
  return jobs;
}

TEST_P(NcclTest, RunsAnyPlanWithTheExactResult) {
  const auto jobs = library_jobs(GetParam());
  for (const Result result : {Result::kSum, Result::kMean}) {
    on_gpu_ranks(GetParam(),
                 [&](Transport& transport, Memory& memory) { train(transport, memory, jobs, result); });
  }
}

/// Through blocks of the host's memory: what transports carry.
TEST_P(NcclTest, RunsEveryOtherRoadThroughTheHost) {
  for (const Road& road : roads_for(GetParam())) {
    SCOPED_TRACE(describe(road));
    const RandomJob job = random_job(7, GetParam(), road);
    on_gpu_ranks(ranks_of(job.plan), [&](Transport& transport, Memory& memory) {
      train(transport, memory, {job}, Result::kMean);
    });
  }
}

/// NCCL's algorithm and protocol of this process's last collective, by the stand-in; "": this is NCCL itself.
std::string last_choice() {
  using Choice = const char* (*)();
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  const auto choice = reinterpret_cast<Choice>(dlsym(library, "commtune_standin_nccl_choice"));
  return choice == nullptr ? "" : choice();
}

TEST_P(NcclTest, TakesTheAlgorithmThatItIsTold) {
  on_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    Communicator communicator(transport, memory);
    const auto tell = [&](const std::string& text) { return broadcast(communicator, text, soon()); };
    for (const std::string name : {"nccl:Ring+LL", "nccl:Tree+Simple+2", "nccl:Ring+Simple", "nccl"}) {
      SCOPED_TRACE(name);
      const auto library = make_library(name, {communicator, tell, soon()}, communicator.size());
      library_cases().front().body(communicator, *library);  // all-reduces
      const std::string told = name.substr(std::min(name.size(), name.find(':') + 1));
      const std::string choice = last_choice();
      EXPECT_TRUE(choice.empty() || name == "nccl" || choice == told) << choice;
      EXPECT_EQ(std::getenv("NCCL_ALGO"), nullptr) << "what the process had before";
      barrier(communicator, soon());
    }
  });
}

TEST_P(NcclTest, SaysWhichOptionsItTakes) {
  on_gpu_ranks(2, [](Transport& transport, Memory& memory) {
    Communicator communicator(transport, memory);
    EXPECT_THAT(why_no_library("nccl:ring", communicator).value(),
                HasSubstr("library nccl: its options, \"ring\", must be as in Ring+LL128"));
    EXPECT_FALSE(why_no_library("nccl:Ring+LL128", communicator));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclTest, ::testing::Values(2, 4),
                         [](const auto& test) { return fmt::format("{}", test.param); });

using NcclFaultTest = NcclTest;

/// A message of tensors that are no stretch of memory, which is freed while a collective may be stuck on it.
Plan fused_plan(const Profile& profile, int workers) {
  Plan plan = wait_free_plan(profile, workers, AllReduce{Collective::kLibrary});
  plan.messages = {{{plan.messages[1].pieces[0], plan.messages[0].pieces[0]}}};
  plan.priority = {0};
  return plan;
}

/// A plan by NCCL whose second iteration one rank does not come to.
void train_until(Transport& transport, Memory& memory, const std::function<void()>& instead) {
  const Profile profile = profile_of({100'000, 3000});
  DeviceGradients gradients(profile, transport.peers().rank);
  SessionOptions options;
  options.memory = &memory;
  options.workers = transport.peers().size();
  options.timeout = Seconds{5};
  Session session(transport, layout_of(profile), gradients.gradients(), options);
  session.adopt(fused_plan(profile, options.workers));
  for (int i = 0; i < 3; ++i) {
    if (i == 1 && transport.peers().rank == 1) instead();
    session.begin_iteration();
    session.ready({0, 2});
    session.wait({0, 2}, Clock::now());
  }
}

TEST_P(NcclFaultTest, ARankThatIsKilledIsNoticed) {
  const auto ends = ends_of_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    train_until(transport, memory, [] { std::raise(SIGKILL); });
  });
  EXPECT_EQ(ends[1], "killed by signal 9");
  EXPECT_THAT(ends[0], ::testing::AnyOf(HasSubstr("rank 1"), HasSubstr("NCCL"))) << "rank 0";
}

TEST_P(NcclFaultTest, ARankThatStaysAwayEndsTheWaitOfTheOthers) {
  const auto ends = ends_of_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    train_until(transport, memory, [] {
      std::this_thread::sleep_for(std::chrono::seconds(12));
      throw Error(ErrorCode::kInterrupted, "stayed away");
    });
  });
  EXPECT_EQ(ends[1], "stayed away");
  EXPECT_THAT(ends[0], HasSubstr("waited 5.0 s for a peer in the reduce stage of message 0")) << "rank 0";
}

/// Only the stand-in hangs, and fails, when it is asked to.
bool is_standin(const Memory& memory) {
  const std::string gpu = dynamic_cast<const cuda::CudaMemory&>(memory).gpu().name();
  return gpu.find("stand-in") != std::string::npos;
}

TEST_P(NcclFaultTest, RanksThatCannotConnectSaySo) {
  setenv("COMMTUNE_STANDIN_NCCL_HANG_AT", "1", 1);
  const auto ends = ends_of_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    if (!is_standin(memory)) throw Error(ErrorCode::kUnavailable, "a real GPU");
    train_until(transport, memory, [] {});
  });
  unsetenv("COMMTUNE_STANDIN_NCCL_HANG_AT");
  if (ends[0] == "a real GPU") GTEST_SKIP() << "a real GPU's NCCL does not hang when asked to";
  EXPECT_THAT(ends, ::testing::Contains(HasSubstr("did not end in time")));
  for (const std::string& end : ends)
    EXPECT_THAT(end, ::testing::AnyOf(HasSubstr("did not end in time"), HasSubstr("rank ")))
        << "of all ranks";
}

TEST_P(NcclFaultTest, ACommunicatorThatFailsEndsTheRun) {
  setenv("COMMTUNE_STANDIN_NCCL_FAIL_AT", "3", 1);  // of each communicator: in the second iteration
  const auto ends = ends_of_gpu_ranks(GetParam(), [](Transport& transport, Memory& memory) {
    if (!is_standin(memory)) throw Error(ErrorCode::kUnavailable, "a real GPU");
    train_until(transport, memory, [] {});
  });
  unsetenv("COMMTUNE_STANDIN_NCCL_FAIL_AT");
  if (ends[0] == "a real GPU") GTEST_SKIP() << "a real GPU's NCCL does not fail when asked to";
  for (const std::string& end : ends)
    EXPECT_THAT(end, ::testing::AnyOf(HasSubstr("asynchronous error"), HasSubstr("rank "))) << "of all ranks";
  EXPECT_THAT(ends, ::testing::Contains(HasSubstr("asynchronous error")));
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclFaultTest, ::testing::Values(2, 4),
                         [](const auto& test) { return fmt::format("{}", test.param); });

TEST(NcclWithoutGradientsOnAGpu, SaysWhyNot) {
  if (const std::string why = why_no_gpu_ranks(); !why.empty()) GTEST_SKIP() << why;
  on_gpu_ranks(1, [](Transport& transport, Memory& memory) {
    EXPECT_EQ(why_no_library("nccl", Communicator(transport)),
              "library nccl: it sums in a GPU's memory, and these gradients lie on the host");
    EXPECT_EQ(why_no_library("openmpi", Communicator(transport, memory)),
              "library openmpi: it sums in the host's memory, and these gradients lie on cuda:0");
    EXPECT_FALSE(why_no_library("", Communicator(transport, memory)));
  });
}

}  // namespace
}  // namespace commtune::tests
