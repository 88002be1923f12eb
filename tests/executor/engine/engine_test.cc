#include "executor/engine/engine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <latch>
#include <optional>
#include <string>
#include <vector>

#include "executor/base/short_turns.h"
#include "executor/roads/steps.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

/// One rank's gradients and the engine that brings them back.
class Rank {
 public:
  Rank(Transport& transport, const Plan& plan, const Profile& profile, Seconds timeout = Seconds{100},
       bool own_barrier = false)
      : communicator_(transport), layers_(profile.layers.size()) {
    Gradients gradients;
    if (transport.peers().rank < plan.workers) {
      for (const Layer& layer : profile.layers) {
        for (const Tensor& tensor : layer.tensors)
          tensors_.emplace_back(tensor.bytes.count / sizeof(float), 0.0F);
      }
      for (Floats& tensor : tensors_) gradients.push_back(std::as_writable_bytes(std::span(tensor)));
    }
    EngineOptions options;
    options.road = make_settings(plan, profile.type, Result::kSum, with_chunk({}, Bytes{4096}));
    options.timeout = timeout;
    options.served_limit = 100;
    options.own_barrier = own_barrier;
    engine_.emplace(communicator_, plan, layout_of(profile), gradients, options);
  }

  Engine& engine() { return *engine_; }
  Floats& tensor(std::size_t layer) { return tensors_[layer]; }
  void fill(float value) {
    for (Floats& tensor : tensors_) std::fill(tensor.begin(), tensor.end(), value);
  }
  TensorId tensors() const { return static_cast<TensorId>(layers_); }
  void ready(TensorId tensor) { engine_->ready({tensor, tensor + 1}); }
  bool is_back(TensorId tensor) { return engine_->is_back({tensor, tensor + 1}); }
  bool wait(TensorId tensor) { return engine_->wait({tensor, tensor + 1}, Clock::now()); }
  void all_ready() {
    for (TensorId tensor = tensors(); tensor-- > 0;) ready(tensor);
  }
  void wait_for_all() {
    for (TensorId tensor = 0; tensor < tensors(); ++tensor) wait(tensor);
  }
  void iterate() {
    engine_->begin_iteration();
    all_ready();
    wait_for_all();
  }

 private:
  Communicator communicator_;
  const std::size_t layers_;
  std::vector<Floats> tensors_;  // outlive the engine
  std::optional<Engine> engine_;
};

/// The last two layers' gradients in one message, the first one's in another.
Plan fused_plan(const Profile& profile, int workers, const Road& road = AllReduce{}) {
  Plan plan = wait_free_plan(profile, workers, road);
  const auto tensors = tensors_of(profile);
  plan.messages = {{{{1, Bytes{0}, tensors[1].bytes}, {2, Bytes{0}, tensors[2].bytes}}},
                   {{{0, Bytes{0}, tensors[0].bytes}}}};
  plan.priority = {0, 1};
  return plan;
}

const Profile kThree = profile_of({100, 20, 300});

TEST(Engine, BringsEverySumBackInEachIteration) {
  on_ranks(3, [](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 3), kThree);
    for (const float value : {1.0F, 5.0F}) {
      rank.fill(value);
      rank.iterate();
      for (std::size_t layer = 0; layer < 3; ++layer) EXPECT_THAT(rank.tensor(layer), Each(3 * value));
    }
    rank.engine().finish();
  });
}

/// Threads of this process with turns of so many nanoseconds.
int threads_with_turn(std::uint64_t turn) {
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (turn_of_thread(std::stoi(entry.path().filename())) == turn) ++threads;
  }
  return threads;
}

TEST(Engine, ItsThreadAloneRunsSoonAfterBytesHaveCome) {
  const std::uint64_t usual = turn_of_thread(0);
  if (usual == 0) GTEST_SKIP() << "needs Linux 6.12, which knows turns of a thread's own";
  std::latch iterated(2), counted(2);
  on_ranks(2, [&](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 2), kThree);
    rank.iterate();
    iterated.arrive_and_wait();
    EXPECT_EQ(threads_with_turn(100'000), 2);
    EXPECT_EQ(turn_of_thread(0), usual);
    counted.arrive_and_wait();
    rank.engine().finish();
  });
}

TEST(Engine, AMessageGoesWhenItsLastGradientIsReadyWhicheverThatIs) {
  for (const std::vector<TensorId>& order :
       {std::vector<TensorId>{1, 2, 0}, std::vector<TensorId>{0, 2, 1}, std::vector<TensorId>{2, 0, 1}}) {
    on_ranks(2, [&](Transport& transport) {
      Plan plan = fused_plan(kThree, 2);
      plan.barrier = Barrier::kPerLayer;
      Rank rank(transport, plan, kThree);
      rank.fill(2);
      rank.engine().begin_iteration();
      int fused = 0;
      for (const TensorId tensor : order) {
        if (fused < 2) {
          EXPECT_FALSE(rank.is_back(1));  // it travels with tensor 2, and one of them is missing
          EXPECT_FALSE(rank.is_back(0));  // its message waits for its turn in the list
        }
        rank.ready(tensor);
        fused += tensor > 0 ? 1 : 0;
      }
      rank.wait_for_all();
      EXPECT_THAT(rank.tensor(0), Each(4.0F));
      EXPECT_THAT(rank.tensor(2), Each(4.0F));
      rank.engine().finish();
    });
  }
}

/// Whether rank 0 takes part in the second message of a plan once rank 1 has begun it, though it has not sent
/// all of the first one yet as far as it knows.
bool starts_what_its_peer_began(Bytes credit) {
  const Profile two = profile_of({8, 8});
  Plan plan = wait_free_plan(two, 2, AllReduce{Collective::kRecursiveDoubling});
  plan.credit = credit;
  bool started = false;
  on_ranks(2, [&](Transport& transport) {
    if (transport.peers().rank == 0) {
      Rank rank(transport, plan, two);
      rank.iterate();
      return rank.engine().finish();
    }
    const std::vector<std::byte> gradients(8 * sizeof(float));
    std::array<std::vector<std::byte>, 2> sums{gradients, gradients};
    const auto reduce = [](std::uint32_t message) { return make_tag(TagSpace::kReduce, message); };
    const auto comes = [&](TransferId transfer, Deadline until) {
      while (Clock::now() < until) {
        for (const Completion& completion : transport.wait(until))
          if (completion.transfer == transfer) return true;
      }
      return false;
    };
    const TransferId second = transport.receive(0, reduce(1), sums[1]);
    transport.send(0, reduce(1), gradients);
    started = comes(second, Clock::now() + std::chrono::milliseconds(credit > Bytes{0} ? 20'000 : 50));
    const TransferId first = transport.receive(0, reduce(0), sums[0]);
    transport.send(0, reduce(0), gradients);
    comes(started ? first : second, soon());
  });
  return started;
}

TEST(Engine, TheCreditHoldsBackWhatNoRankHasBegun) {
  EXPECT_TRUE(starts_what_its_peer_began(Bytes{1}));
  EXPECT_FALSE(starts_what_its_peer_began(Bytes{0}));
}

TEST(Engine, WaitsForAllGradientsWhereThePlanReleasesAfterTheBackwardPass) {
  on_ranks(2, [](Transport& transport) {
    Plan plan = fused_plan(kThree, 2);
    plan.release = Release::kBackward;
    plan.barrier = Barrier::kPerLayer;
    Rank rank(transport, plan, kThree);
    rank.engine().begin_iteration();
    rank.ready(0);
    rank.ready(2);
    EXPECT_FALSE(rank.is_back(0));
    rank.ready(1);
    rank.wait_for_all();
    rank.engine().finish();
  });
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
}

TEST(Engine, RefusesWhatIsReadyTwiceOrNotBackYet) {
  on_ranks(1, [](Transport& transport) {
    Plan plan = fused_plan(kThree, 1);
    plan.barrier = Barrier::kPerLayer;
    Rank rank(transport, plan, kThree);
    rank.engine().begin_iteration();
    rank.ready(1);
    EXPECT_EQ(refusal_of([&] { rank.ready(1); }),
              "ready: gradient layer1.weight was ready already in this iteration");
    rank.ready(2);
    rank.wait(2);
    EXPECT_EQ(
        refusal_of([&] { rank.engine().begin_iteration(); }),
        "begin_iteration: gradient layer0.weight is not back of the iteration before: wait for it first");
    rank.ready(0);
    rank.wait_for_all();
    rank.engine().begin_iteration();
    rank.all_ready();
    rank.wait_for_all();
    rank.engine().finish();
  });
}

TEST(Engine, ALayerIsBackWhenItsOwnMessagesAreWhereTheBarrierIsPerLayer) {
  on_ranks(2, [](Transport& transport) {
    Plan plan = fused_plan(kThree, 2);
    plan.barrier = Barrier::kPerLayer;
    Rank rank(transport, plan, kThree);
    rank.engine().begin_iteration();
    rank.ready(2);
    rank.ready(1);
    rank.wait(2);
    EXPECT_TRUE(rank.is_back(1));
    EXPECT_FALSE(rank.is_back(0));
    rank.ready(0);
    rank.wait_for_all();
    rank.engine().finish();
  });
}

TEST(Engine, NoLayerIsBackBeforeTheLastOneWhereTheBarrierIsFull) {
  on_ranks(2, [](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 2), kThree);
    rank.engine().begin_iteration();
    rank.ready(2);
    rank.ready(1);
    EXPECT_FALSE(rank.is_back(2));
    rank.ready(0);
    rank.wait_for_all();
    EXPECT_TRUE(rank.is_back(0));
    rank.engine().finish();
  });
}

TEST(Engine, ALayerIsBackWhenItsOwnMessagesAreForWhoeverHasABarrierOfHisOwn) {
  on_ranks(2, [](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 2), kThree, Seconds{100}, true);
    rank.engine().begin_iteration();
    rank.ready(2);
    rank.ready(1);
    rank.wait(2);
    EXPECT_FALSE(rank.is_back(0));
    EXPECT_THROW(rank.engine().begin_iteration(), Error);
    rank.ready(0);
    rank.wait_for_all();
    rank.iterate();
    rank.engine().finish();
  });
}

TEST(Engine, TellsWhenAMessageWasWhereInItsOrder) {
  on_ranks(2, [](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 2), kThree);
    rank.iterate();
    for (const MessageTimes& times : rank.engine().times()) {
      EXPECT_LE(times.queued, times.started);
      EXPECT_LE(times.started, times.reduced);
      EXPECT_LE(times.reduced, times.distributing);
      EXPECT_LE(times.distributing, times.distributed);
    }
    rank.engine().finish();
  });
}

TEST(Engine, ServesUntilEveryWorkerHasFinished) {
  const ParameterServer road{1, Placement::kDedicated, Assignment::kEven};
  on_ranks(3, [&](Transport& transport) {
    Rank rank(transport, fused_plan(kThree, 2, road), kThree);
    if (transport.peers().rank == 2) {
      rank.engine().finish();
      const std::vector<Served> served = rank.engine().served();
      ASSERT_EQ(served.size(), 4U);  // 2 messages, twice
      for (const Served& each : served) EXPECT_LE(each.from, each.until);
      return;
    }
    for (int i = 0; i < 2; ++i) {
      rank.fill(1);
      rank.iterate();
      EXPECT_THAT(rank.tensor(2), Each(2.0F));
    }
    rank.engine().finish();
    EXPECT_TRUE(rank.engine().served().empty());
  });
}

TEST(Engine, EndsWhateverIsUnderWayWhenItIsDestroyed) {
  std::latch gone(1);
  on_ranks(2, [&](Transport& transport) {
    if (transport.peers().rank == 1) return gone.wait();
    {
      Rank rank(transport, fused_plan(kThree, 2), kThree);
      rank.engine().begin_iteration();
      rank.all_ready();
    }
    gone.count_down();
  });
}

TEST(Engine, RethrowsWhatEndedItsThreadToWhoeverAsksNext) {
  std::latch begun(1);
  on_ranks(2, [&](Transport& transport) {
    if (transport.peers().rank == 1) {
      begun.wait();
      return transport.abort("out of memory");
    }
    Rank rank(transport, fused_plan(kThree, 2), kThree);
    rank.engine().begin_iteration();
    begun.count_down();
    rank.all_ready();
    EXPECT_THROW(rank.wait_for_all(), Error);
    EXPECT_THROW(rank.engine().begin_iteration(), Error);
    EXPECT_THROW(rank.engine().finish(), Error);
  });
}

/// Another transport, but for waiting: that fails, as a card does that gives up on a message.
class FailingTransport final : public Transport {
 public:
  FailingTransport(Transport& other, Tag tag) : other_(other), tag_(tag) {}
  std::string_view name() const override { return other_.name(); }
  const Peers& peers() const override { return other_.peers(); }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return other_.send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return other_.receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline /*until*/) override {
    throw MessageError(Error(ErrorCode::kPeerLost, "lost rank 1 (host local1)"), tag_);
  }
  void wake() noexcept override { other_.wake(); }
  void abort(std::string_view why) noexcept override { other_.abort(why); }

 private:
  Transport& other_;
  Tag tag_;
};

std::string words_for_a_failure_of(Tag tag) {
  std::string text;
  std::latch heard(1);
  on_ranks(2, [&](Transport& transport) {
    if (transport.peers().rank == 1) return heard.wait();
    {
      FailingTransport failing(transport, tag);
      Rank rank(failing, fused_plan(kThree, 2), kThree);
      try {
        rank.engine().begin_iteration();
        rank.all_ready();
        rank.wait_for_all();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
        text = error.what();
      }
    }
    heard.count_down();
  });
  return text;
}

TEST(Engine, SaysWhichTensorsAMessageCarriesThatATransportGaveUp) {
  EXPECT_EQ(words_for_a_failure_of(make_tag(TagSpace::kDistribute, 0)),
            "lost rank 1 (host local1); in the distribute stage of message 0 (layer1.weight and 1 more)");
  EXPECT_EQ(words_for_a_failure_of(lane_tag(TagSpace::kReduce, 0, 1)),
            "lost rank 1 (host local1); in the reduce stage of message 0 (layer1.weight and 1 more)");
  for (const Tag other : {make_tag(TagSpace::kControl, 0), make_tag(TagSpace::kReduce, kAnyNumber)})
    EXPECT_EQ(words_for_a_failure_of(other), "lost rank 1 (host local1)");
}

// ---- What a rank says that waited in vain ----

/// Of rank 0, whose peers do `instead` of their part, and then nothing.
std::string complaint(const Plan& plan, const Profile& profile, int ranks, LocalOptions options,
                      const std::function<void(Transport&)>& instead = {}) {
  std::string text;
  std::latch heard(1);
  on_ranks(
      ranks,
      [&](Transport& transport) {
        if (transport.peers().rank > 0) {
          if (instead) instead(transport);
          return heard.wait();
        }
        {
          Rank rank(transport, plan, profile, Seconds{0.05});
          rank.engine().begin_iteration();
          rank.all_ready();
          try {
            rank.wait_for_all();
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kTimeout);
            text = error.what();
          }
        }
        heard.count_down();
      },
      options);
  return text;
}

const Profile kOne = profile_of({8});

TEST(Engine, NamesWhomItWaitedFor) {
  EXPECT_THAT(complaint(wait_free_plan(kOne, 2, AllReduce{}), kOne, 2, {}),
              HasSubstr("for rank 1 (host local1) in the reduce stage of message 0 (layer0.weight)"));
}

TEST(Engine, NamesWhomItWaitedForInsideItsHost) {
  const Plan plan = wait_free_plan(kOne, 4, AllReduce{Collective::kHierarchical});
  EXPECT_THAT(complaint(plan, kOne, 4, {.ranks_per_host = 2}),
              HasSubstr("for rank 1 (host local0) in the reduce stage of message 0"));
}

TEST(Engine, NamesWhomItWaitedForInsideItsHostBeforeAServer) {
  ParameterServer road{1, Placement::kDedicated, Assignment::kEven};
  road.local_sum = LocalSum::kFirst;
  EXPECT_THAT(complaint(wait_free_plan(kOne, 2, road), kOne, 3, {.ranks_per_host = 2}),
              HasSubstr("for rank 1 (host local0) in the reduce stage of message 0"));
}

TEST(Engine, NamesWhomItWaitedForInTheSecondTree) {
  // Rank 1 does its part in the first tree, of which rank 0 is the root, and none in the second, its own.
  const auto first_tree_only = [](Transport& transport) {
    Communicator communicator(transport);
    std::vector<std::byte> half(16);
    const auto part = [&]() -> Task {
      co_await communicator.send(0, lane_tag(TagSpace::kReduce, 0, 0), half);
      co_await communicator.receive(0, lane_tag(TagSpace::kDistribute, 0, 0), half);
    };
    communicator.run(part(), Clock::now() + std::chrono::seconds(100));
  };
  const Plan plan = wait_free_plan(kOne, 2, AllReduce{Collective::kDoubleBinaryTree});
  EXPECT_THAT(complaint(plan, kOne, 2, {}, first_tree_only),
              HasSubstr("for rank 1 (host local1) in the distribute stage of message 0"));
}

TEST(Engine, NamesWhoDidNotPushToTheServerBesideIt) {
  const ParameterServer road{1, Placement::kColocated, Assignment::kEven};
  EXPECT_THAT(complaint(wait_free_plan(kOne, 2, road), kOne, 2, {}),
              HasSubstr("for rank 1 (host local1) to push message 0 (layer0.weight)"));
}

}  // namespace
}  // namespace commtune::tests
