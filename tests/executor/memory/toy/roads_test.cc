// Every road through the memory of a device that the product does not have: this folder, and nothing else.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "executor/engine/engine.h"
#include "executor/replay/host_replay.h"
#include "executor/replay/pattern.h"
#include "executor/session/session.h"
#include "perfmodel/base/error.h"
#include "tests/executor/memory/toy/toy.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using toy::ToyMemory;

/// A job's gradients on a device, side by side as a training program has them.
class DeviceGradients {
 public:
  /// Where a plan divides before it casts, gradients are that many times the pattern: exact in every type.
  DeviceGradients(ToyMemory& memory, const Profile& profile, int rank, const Plan& plan, Result result)
      : memory_(memory),
        type_(profile.type),
        rank_(rank),
        workers_(plan.workers),
        divides_first_(plan.wire != WireFormat::kAsIs && result == Result::kMean),
        result_(divides_first_ ? Result::kSum : result),
        whole_(memory.allocate(profile.gradient_bytes().count)) {
    std::size_t end = whole_.bytes;
    for (const TensorRef& tensor : tensors_of(profile)) {
      end -= tensor.bytes.count;
      gradients_.push_back(whole_.part(end, tensor.bytes.count));
    }
  }
  ~DeviceGradients() { memory_.release(whole_); }
  DeviceGradients(const DeviceGradients&) = delete;
  DeviceGradients& operator=(const DeviceGradients&) = delete;

  const Gradients& gradients() const { return gradients_; }

  void write(std::uint64_t iteration) {
    for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
      std::vector<std::byte> bytes(gradients_[tensor].bytes);
      fill(bytes, type_, rank_, tensor, iteration, divides_first_ ? workers_ : 1);
      memory_.write(gradients_[tensor], bytes);
    }
  }
  void expect_result(std::uint64_t iteration) {
    for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
      std::vector<std::byte> bytes(gradients_[tensor].bytes);
      memory_.read(bytes, gradients_[tensor]);
      const auto wrong = first_wrong(bytes, type_, workers_, result_, tensor, iteration);
      EXPECT_FALSE(wrong) << "rank " << rank_ << ", iteration " << iteration << ": tensor " << tensor
                          << ", element " << *wrong;
    }
  }

 private:
  ToyMemory& memory_;
  const DataType type_;
  const int rank_, workers_;
  const bool divides_first_;
  const Result result_;
  const Buffer whole_;
  Gradients gradients_;
};

void iterate(Engine& engine, const Profile& profile) {
  engine.begin_iteration();
  const TensorRange all{0, static_cast<TensorId>(profile.tensor_count())};
  engine.ready(all);
  engine.wait(all, Clock::now());
}

/// One rank of a job whose gradients lie on the toy.
void run_rank(Transport& transport, ToyMemory& memory, const RandomJob& job, Result result) {
  const int rank = transport.peers().rank;
  Communicator communicator(transport, memory);
  EngineOptions options;
  options.road = make_settings(job.plan, job.profile.type, result, with_chunk({}, Bytes{4096}));
  options.timeout = Seconds{100};
  if (rank >= job.plan.workers) {
    Engine engine(communicator, job.plan, layout_of(job.profile), {}, options);
    engine.finish();
    return;
  }
  DeviceGradients gradients(memory, job.profile, rank, job.plan, result);
  Engine engine(communicator, job.plan, layout_of(job.profile), gradients.gradients(), options);
  for (std::uint64_t iteration = 1; iteration <= 3; ++iteration) {
    gradients.write(iteration);
    iterate(engine, job.profile);
    gradients.expect_result(iteration);
  }
  engine.finish();
}

class OnAToyDevice : public ::testing::TestWithParam<std::tuple<ToyMemory::Ends, int>> {
 protected:
  static ToyMemory::Ends ends() { return std::get<0>(GetParam()); }
  static int workers() { return std::get<1>(GetParam()); }
};

TEST_P(OnAToyDevice, EveryRoadIsExact) {
  std::atomic<std::uint64_t> late{0};
  for (const Road& road : roads_for(workers())) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, describe(road)));
      const RandomJob job = random_job(seed * 1000 + static_cast<std::uint64_t>(workers()), workers(), road);
      const Result result = seed % 2 == 0 ? Result::kMean : Result::kSum;
      LocalOptions ranks{.ranks_per_host = 1 + static_cast<int>(seed % 2)};
      if (seed > 1) ranks.send_ends = LocalOptions::SendEnds::kWhenReceived;
      on_ranks(
          ranks_of(job.plan),
          [&](Transport& transport) {
            ToyMemory memory(1 + static_cast<std::uint32_t>(transport.peers().rank), ends());
            run_rank(transport, memory, job, result);
            EXPECT_EQ(memory.conflicts(), 0U) << "rank " << transport.peers().rank;
            late += memory.late();
          },
          ranks);
    }
  }
  EXPECT_GT(late, 0U);
}

INSTANTIATE_TEST_SUITE_P(Toy, OnAToyDevice,
                         ::testing::Combine(::testing::Values(ToyMemory::Ends::kOnAThread,
                                                              ToyMemory::Ends::kAfterPolls),
                                            ::testing::Values(1, 2, 3, 5)),
                         [](const auto& test) {
                           const bool thread = std::get<0>(test.param) == ToyMemory::Ends::kOnAThread;
                           return fmt::format("{}_{}workers", thread ? "thread" : "polls",
                                              std::get<1>(test.param));
                         });

/// A run that fails leaves the device nothing to write, and its engine goes.
TEST(ToyDevice, AFailureIsToldAndEndsCleanly) {
  const Profile profile = profile_of({5000, 300});
  RandomJob job{profile, wait_free_plan(profile, 2, AllReduce{})};
  on_ranks(2, [&](Transport& transport) {
    ToyMemory memory(1 + static_cast<std::uint32_t>(transport.peers().rank), ToyMemory::Ends::kOnAThread);
    if (transport.peers().rank == 1) return transport.abort("out of memory");
    EXPECT_THROW(run_rank(transport, memory, job, Result::kSum), Error);
    EXPECT_EQ(memory.conflicts(), 0U);
  });
}

/// Carries what another transport does, and has to be told of memory before it travels.
class ParticularTransport final : public Transport {
 public:
  explicit ParticularTransport(Transport& carrier) : carrier_(carrier) {}

  std::uint64_t unknown() const { return unknown_; }        ///< transfers of memory that nobody registered
  std::uint64_t registered() const { return registered_; }  ///< times that memory was
  std::size_t left() const { return known_.size(); }

  std::string_view name() const override { return "particular"; }
  const Peers& peers() const override { return carrier_.peers(); }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    look_up(tag, data);
    return carrier_.send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    look_up(tag, data);
    return carrier_.receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline until) override { return carrier_.wait(until); }
  void wake() noexcept override { carrier_.wake(); }
  void register_memory(std::span<std::byte> memory) override {
    EXPECT_TRUE(known_.emplace(memory.data(), memory.size()).second) << "registered twice";
    ++registered_;
  }
  void unregister_memory(std::span<std::byte> memory) noexcept override { known_.erase(memory.data()); }
  void abort(std::string_view why) noexcept override { carrier_.abort(why); }

 private:
  void look_up(Tag tag, std::span<const std::byte> data) {
    if (tag_space_of(tag) == TagSpace::kControl || data.empty()) return;
    const auto after = known_.upper_bound(data.data());
    const bool found = after != known_.begin() &&
                       data.data() + data.size() <= std::prev(after)->first + std::prev(after)->second;
    if (!found) ++unknown_;
  }

  Transport& carrier_;
  std::map<const std::byte*, std::size_t> known_;
  std::uint64_t unknown_ = 0, registered_ = 0;
};

/// Gradients of the host's memory.
void run_on_host(ParticularTransport& transport, const RandomJob& job) {
  HostReplay replay(job.profile, transport.peers().rank, job.plan.workers, Result::kSum);
  SessionOptions options;
  options.workers = job.plan.workers;
  options.result = Result::kSum;
  options.chunk = Bytes{4096};
  const bool works = transport.peers().rank < job.plan.workers;
  Session session(transport, layout_of(job.profile), works ? replay.gradients() : Gradients{}, options);
  session.adopt(job.plan);
  replay.follow(job.plan);
  for (int i = 0; works && i < 2; ++i) replay.iterate(session, Compare::kEverything);
  session.leave();
}

TEST(Registration, WhatTravelsIsRegisteredOnceForAPlan) {
  for (const Road& road : roads_for(3)) {
    for (const bool on_device : {false, true}) {
      SCOPED_TRACE(describe(road) + (on_device ? " on a device" : ""));
      const RandomJob job = random_job(1003, 3, road);
      on_ranks(ranks_of(job.plan), [&](Transport& carrier) {
        ParticularTransport transport(carrier);
        const int rank = transport.peers().rank;
        if (on_device) {
          ToyMemory memory(1 + static_cast<std::uint32_t>(rank), ToyMemory::Ends::kAfterPolls);
          run_rank(transport, memory, job, Result::kSum);
        } else {
          run_on_host(transport, job);
        }
        EXPECT_EQ(transport.unknown(), 0U);
        EXPECT_GT(transport.registered(), 0U);
        EXPECT_EQ(transport.left(), 0U);
      });
    }
  }
}

}  // namespace
}  // namespace commtune::tests
