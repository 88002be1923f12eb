#include "executor/session/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "executor/replay/pattern.h"
#include "executor/transport/bootstrap/callback_bootstrap.h"
#include "executor/transport/tcp/tcp.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// One rank's session and gradients, driven as a training program would: gradients become ready in any order
/// on several threads, and are waited for on others.
class Trainer {
 public:
  Trainer(Transport& transport, const Profile& profile, int workers, SessionOptions options = {})
      : layout_(layout_of(profile)), workers_(workers) {
    const bool trains = transport.peers().rank < workers;
    for (const Tensor& tensor : layout_.tensors) memory_.emplace_back(trains ? tensor.bytes.count : 0);
    Gradients gradients(memory_.begin(), memory_.end());
    if (!trains) gradients.clear();
    options.workers = workers;
    options.timeout = Seconds{100};
    options.chunk = Bytes{4096};
    session_ = std::make_unique<Session>(transport, layout_, std::move(gradients), std::move(options));
  }

  Session& session() { return *session_; }

  /// An iteration whose order, threads and late tensors the seed decides. Every element of every tensor is
  /// compared.
  void iterate(std::uint64_t seed) {
    const std::uint64_t iteration = session_->iteration() + 1;
    for (TensorId i = 0; i < memory_.size(); ++i)
      fill(memory_[i], layout_.type, session_->rank(), i, iteration);
    session_->begin_iteration();
    std::mt19937_64 random(seed * 31 + static_cast<std::uint64_t>(session_->rank()));
    const std::vector<TensorId> made = shuffled(random), used = shuffled(random);
    std::array<std::exception_ptr, kThreads> failures;
    {
      std::vector<std::jthread> threads;
      for (std::size_t first = 0; first < kThreads; ++first) {
        threads.emplace_back([&, first] {
          for (std::size_t i = first; i < made.size(); i += kThreads) {
            if (i % 5 == 4) std::this_thread::sleep_for(std::chrono::microseconds(seed % 7 * 20));
            session_->ready(made[i]);
          }
        });
        threads.emplace_back([&, first] {
          try {
            for (std::size_t i = first; i < used.size(); i += kThreads) {
              session_->wait(used[i]);
              if (!session_->is_back(used[i])) ADD_FAILURE() << "waited for a tensor that is not back";
            }
          } catch (const Error&) {
            failures[first] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    for (TensorId i = 0; i < memory_.size(); ++i) {
      const auto wrong = first_wrong(memory_[i], layout_.type, workers_, Result::kMean, i, iteration);
      if (wrong) {
        ADD_FAILURE() << fmt::format("rank {}: {}[{}] in iteration {}", session_->rank(),
                                     layout_.tensors[i].name, *wrong, iteration);
      }
    }
  }

 private:
  static constexpr std::size_t kThreads = 2;

  std::vector<TensorId> shuffled(std::mt19937_64& random) const {
    std::vector<TensorId> ids(memory_.size());
    std::iota(ids.begin(), ids.end(), 0U);
    std::shuffle(ids.begin(), ids.end(), random);
    return ids;
  }

  const TensorLayout layout_;
  const int workers_;
  std::vector<std::vector<std::byte>> memory_;  // outlives the session
  std::unique_ptr<Session> session_;
};

/// Of the Error that `action` throws.
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

const Profile kTensors = profile_of({1, 700, 20, 3000, 5, 64, 900});

Road road_of(std::uint64_t seed, int workers) {
  const std::vector<Road> roads = roads_for(workers);
  return roads[seed % roads.size()];
}

TEST(Session, GradientsAreExactWhicheverThreadMakesThemReadyInWhicheverOrder) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Plan plan = random_plan(seed, kTensors, 3, road_of(seed, 3));
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, describe(plan.road)));
    on_ranks(ranks_of(plan), [&](Transport& transport) {
      Trainer trainer(transport, kTensors, 3);
      if (!trainer.session().trains()) return trainer.session().serve();
      trainer.session().adopt(plan);
      for (std::uint64_t i = 0; i < 4; ++i) trainer.iterate(seed * 10 + i);
      trainer.session().leave();
    });
  }
}

TEST(Session, TwoLiveInOneProcess) {
  const auto job = [](std::uint64_t seed) {
    const Plan plan = random_plan(seed, kTensors, 2, AllReduce{});
    on_ranks(2, [&](Transport& transport) {
      Trainer trainer(transport, kTensors, 2);
      trainer.session().adopt(plan);
      for (std::uint64_t i = 0; i < 10; ++i) trainer.iterate(seed + i);
      trainer.session().leave();
    });
  };
  std::jthread other([&] { job(1); });
  job(2);
}

// ---- Joined through a callback, over sockets ----

void train_over_sockets(const std::shared_ptr<Bootstrap>& bootstrap) {
  const auto transport = make_tcp_transport(bootstrap);
  Trainer trainer(*transport, kTensors, 2);
  if (!trainer.session().trains()) return trainer.session().serve();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    trainer.session().adopt(random_plan(seed, kTensors, 2, roads_for(2)[seed % 2 == 0 ? 0 : 7]));
    for (std::uint64_t i = 0; i < 2; ++i) trainer.iterate(seed + i);
  }
  trainer.session().leave();
}

TEST(Session, IsJoinedThroughACallbackByThreads) {
  on_bootstraps(3, [](const std::shared_ptr<Bootstrap>& meeting) {
    train_over_sockets(make_callback_bootstrap(meeting->peers().rank, 3, [&](std::span<const std::byte> own) {
      return meeting->all_gather(own, Clock::now() + std::chrono::seconds(100));
    }));
  });
}

/// An all-gather of processes: each has a socket to rank 0, which hands on what all have sent.
class Star {
 public:
  explicit Star(int ranks) : sockets_(static_cast<std::size_t>(ranks)) {
    for (auto& pair : sockets_) {
      if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()) != 0) std::abort();
    }
  }
  std::vector<std::byte> gather(int rank, std::span<const std::byte> own) const {
    std::vector<std::byte> all(own.size() * sockets_.size());
    if (rank != 0) {
      const int socket = sockets_[static_cast<std::size_t>(rank)][1];
      if (send(socket, own.data(), own.size(), 0) < 0 || recv(socket, all.data(), all.size(), 0) < 0)
        std::abort();
      return all;
    }
    std::copy(own.begin(), own.end(), all.begin());
    for (std::size_t peer = 1; peer < sockets_.size(); ++peer) {
      if (recv(sockets_[peer][0], all.data() + peer * own.size(), own.size(), 0) < 0) std::abort();
    }
    for (std::size_t peer = 1; peer < sockets_.size(); ++peer) {
      if (send(sockets_[peer][0], all.data(), all.size(), 0) < 0) std::abort();
    }
    return all;
  }

 private:
  std::vector<std::array<int, 2>> sockets_;
};

TEST(Session, IsJoinedThroughACallbackByProcesses) {
  const Star star(3);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    try {
      train_over_sockets(make_callback_bootstrap(
          rank, 3, [&](std::span<const std::byte> own) { return star.gather(rank, own); }));
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      _exit(2);
    }
    _exit(HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// ---- Switching ----

std::size_t allocated_here() { return mallinfo2().uordblks; }

TEST(Session, TakesTwoHundredPlansInTurnAndKeepsGradientsExactAndMemoryFlat) {
  // 3 workers, and as many ranks behind them as the plan with the most dedicated servers needs: idle under
  // the others.
  constexpr int kWorkers = 3, kRanks = 6, kPlans = 200;
  std::atomic<std::size_t> early{0}, late{0};
  on_ranks(kRanks, [&](Transport& transport) {
    Trainer trainer(transport, kTensors, kWorkers);
    Session& session = trainer.session();
    if (!session.trains()) return session.serve();
    for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
      const Plan plan = random_plan(seed, kTensors, kWorkers, road_of(seed, kWorkers));
      // Half of the time the other ranks only hear of it.
      session.adopt(seed % 2 == 0 || session.rank() == 0 ? std::optional(plan) : std::nullopt);
      ASSERT_NE(session.plan(), nullptr);
      EXPECT_EQ(digest(*session.plan()), digest(plan));
      for (std::uint64_t i = 0; i < 2; ++i) trainer.iterate(seed * 2 + i);
      if (seed % 20 == 7) {
        Plan other = plan;
        other.messages.pop_back();
        EXPECT_THROW(session.adopt(other), PlanRefused);
        trainer.iterate(seed);
      }
      // Plans need more or less while they are in force: the most of some is compared with the most of as
      // many.
      if (session.rank() != 0 || seed < 40) continue;
      std::atomic<std::size_t>& most = seed < 120 ? early : late;
      most = std::max(most.load(), allocated_here());
    }
    session.leave();
  });
  EXPECT_LT(late, early + (1U << 19U));
}

/// What the ranks of a session of two workers are told when rank 1 has objections to a second plan, under
/// which the first one goes on.
std::vector<std::string> refusals(const std::function<Plan(const Plan& first, int rank)>& second,
                                  const SessionOptions& of_rank_1 = {}, int ranks = 2) {
  std::vector<std::string> texts(2);
  on_ranks(ranks, [&](Transport& transport) {
    const int rank = transport.peers().rank;
    Trainer trainer(transport, kTensors, 2, rank == 1 ? of_rank_1 : SessionOptions{});
    Session& session = trainer.session();
    if (!session.trains()) return session.serve();
    const ParameterServer servers{1, Placement::kDedicated, Assignment::kEven};
    const Plan first = random_plan(1, kTensors, 2, ranks > 2 ? Road{servers} : Road{AllReduce{}});
    session.adopt(first);
    trainer.iterate(1);
    try {
      session.adopt(second(first, rank));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const PlanRefused& refused) {
      texts[static_cast<std::size_t>(rank)] = refused.what();
    }
    EXPECT_EQ(digest(*session.plan()), digest(first));
    trainer.iterate(2);
    session.leave();
  });
  return texts;
}

TEST(Session, APlanThatOneRankRefusesIsAdoptedByNone) {
  SessionOptions of_rank_1;
  of_rank_1.accept = [seen = 0](const Plan&) mutable {
    if (++seen == 2) throw Error(ErrorCode::kUnavailable, "no memory for it");
  };
  for (const int ranks : {2, 3}) {
    const auto texts =
        refusals([](const Plan&, int) { return random_plan(2, kTensors, 2, AllReduce{}); }, of_rank_1, ranks);
    EXPECT_THAT(texts, Each(std::string("rank 1 (host local1): no memory for it")));
  }
}

TEST(Session, RefusesAPlanThatTheRanksDoNotHaveInCommon) {
  const auto texts = refusals([](const Plan&, int rank) {
    return random_plan(10 + static_cast<std::uint64_t>(rank), kTensors, 2, AllReduce{});
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(texts[0], HasSubstr("ranks disagree about the plan: rank"));
}

TEST(Session, RefusesAPlanForOtherWorkersOrMoreRanks) {
  EXPECT_THAT(refusals([](const Plan&, int) { return random_plan(1, kTensors, 3, AllReduce{}); }),
              Each(std::string("rank 0 (host local0): the plan is for 3 workers: the session has 2")));
  const ParameterServer servers{2, Placement::kDedicated, Assignment::kEven};
  EXPECT_THAT(refusals([&](const Plan&, int) { return random_plan(1, kTensors, 2, servers); }),
              Each(std::string(
                  "rank 0 (host local0): ranks = 2: the plan needs 4, 2 workers and 2 dedicated servers")));
}

TEST(Session, RefusesRanksThatAreAtDifferentIterations) {
  const auto text = [](Session& session) -> std::string {
    try {
      session.adopt(random_plan(2, kTensors, 2, AllReduce{}));
      return {};
    } catch (const PlanRefused& refused) {
      return refused.what();
    }
  };
  on_ranks(2, [&](Transport& transport) {
    Trainer trainer(transport, kTensors, 2);
    trainer.session().adopt(random_plan(1, kTensors, 2, AllReduce{}));
    trainer.iterate(1);
    if (trainer.session().rank() == 1) trainer.session().begin_iteration();
    EXPECT_EQ(
        text(trainer.session()),
        "ranks disagree about the next iteration: rank 0 (host local0) has 2, rank 1 (host local1) has 3");
    trainer.session().leave();
  });
}

// ---- Switching where only rank 0 knows ----

SessionOptions with_announcements() {
  SessionOptions options;
  options.announced_plans = true;
  return options;
}

/// What a worker saw of a training in which rank 0 announces plans: by iteration the plan that began to be in
/// force there, and by plan why it was refused.
struct Training {
  std::map<std::uint64_t, std::string> switches;
  std::vector<std::string> refusals;
  std::uint64_t iterations = 0;
};

/// Plans that rank 0 announces before it begins these iterations.
using Announcements = std::map<std::uint64_t, Plan>;

/// iterations  of a worker, the slower the higher its rank
Training train(Trainer& trainer, const Announcements& announcements, std::uint64_t iterations) {
  Training seen;
  Session& session = trainer.session();
  std::vector<std::uint64_t> due;
  std::string plan = digest(*session.plan());
  for (std::uint64_t i = 1; i <= iterations; ++i) {
    const auto announced = announcements.find(i);
    if (session.rank() == 0 && announced != announcements.end())
      due.push_back(session.announce(announced->second));
    std::this_thread::sleep_for(std::chrono::microseconds(i % 5 * 40) * session.rank());
    trainer.iterate(i);
    if (const std::string now = digest(*session.plan()); now != plan) seen.switches[i] = plan = now;
    if (session.refusal() && std::ranges::count(seen.refusals, session.refusal()->text) == 0)
      seen.refusals.push_back(session.refusal()->text);
  }
  for (const std::uint64_t iteration : due) EXPECT_LE(iteration, iterations);
  seen.iterations = session.iteration();
  return seen;
}

TEST(Session, AdoptsWhatRankZeroAnnouncesInTheSameIterationOnAllRanks) {
  // 3 workers of different speed, and 2 ranks for plans with dedicated servers.
  constexpr int kWorkers = 3;
  const ParameterServer servers{2, Placement::kDedicated, Assignment::kEven};
  const Plan first = random_plan(1, kTensors, kWorkers, AllReduce{});
  const Announcements announcements = {{40, random_plan(2, kTensors, kWorkers, servers)},
                                       {80, random_plan(3, kTensors, kWorkers, AllReduce{})},
                                       {120, random_plan(4, kTensors, kWorkers, servers)},
                                       {121 + 3, first}};
  std::vector<Training> seen(kWorkers);
  on_ranks(kWorkers + 2, [&](Transport& transport) {
    const int rank = transport.peers().rank;
    SessionOptions options = with_announcements();
    if (rank == 1) {
      options.accept = [refused = digest(announcements.at(80))](const Plan& plan) {
        if (digest(plan) == refused) throw Error(ErrorCode::kUnavailable, "no memory for it");
      };
    }
    Trainer trainer(transport, kTensors, kWorkers, options);
    if (!trainer.session().trains()) return trainer.session().serve();
    trainer.session().adopt(first);
    seen[static_cast<std::size_t>(rank)] = train(trainer, announcements, 200);
    trainer.session().leave();
  });
  const std::map<std::uint64_t, std::string> expected = {{40 + 2, digest(announcements.at(40))},
                                                         {120 + 2, digest(announcements.at(120))},
                                                         {124 + 2, digest(first)}};
  for (const Training& each : seen) {
    EXPECT_EQ(each.switches, expected);
    EXPECT_THAT(each.refusals, ElementsAre("rank 1 (host local1): no memory for it"));
    EXPECT_EQ(each.iterations, 200U);
  }
}

TEST(Session, AdoptsWhatIsAnnouncedOverSockets) {
  constexpr int kWorkers = 2;
  Announcements announcements;
  for (std::uint64_t i = 0; i < 10; ++i)
    announcements[1 + 4 * i] = random_plan(i + 2, kTensors, kWorkers, road_of(i, kWorkers));
  std::vector<Training> seen(kWorkers);
  on_bootstraps(
      4,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        Trainer trainer(*transport, kTensors, kWorkers, with_announcements());
        if (!trainer.session().trains()) return trainer.session().serve();
        trainer.session().adopt(random_plan(1, kTensors, kWorkers, AllReduce{}));
        seen[static_cast<std::size_t>(trainer.session().rank())] = train(trainer, announcements, 50);
        trainer.session().leave();
      },
      4);
  for (const Training& each : seen) {
    EXPECT_THAT(each.refusals, IsEmpty());
    EXPECT_EQ(each.switches.size(), 10U);
    EXPECT_EQ(each.iterations, 50U);
  }
}

TEST(Session, MayEndBeforeWhatIsAnnouncedIsDue) {
  for (int iterations = 0; iterations < 3; ++iterations) {
    on_ranks(3, [&](Transport& transport) {
      Trainer trainer(transport, kTensors, 3, with_announcements());
      Session& session = trainer.session();
      session.adopt(random_plan(1, kTensors, 3, AllReduce{}));
      trainer.iterate(1);
      if (session.rank() == 0) {
        EXPECT_EQ(session.announce(random_plan(2, kTensors, 3, AllReduce{})), 4U);
      }
      for (int i = 0; i < iterations; ++i) trainer.iterate(2);
      session.leave();
    });
  }
}

TEST(Session, AnAnnouncementThatBreaksARuleChangesNothing) {
  on_ranks(2, [&](Transport& transport) {
    Trainer trainer(transport, kTensors, 2, with_announcements());
    Session& session = trainer.session();
    const Plan plan = random_plan(1, kTensors, 2, AllReduce{}),
               next = random_plan(2, kTensors, 2, AllReduce{});
    EXPECT_THAT(message_of([&] { session.announce(next); }),
                HasSubstr(session.rank() == 0 ? "no plan is in force" : "only rank 0 may announce a plan"));
    session.adopt(plan);
    if (session.rank() == 0) {
      Plan broken = next;
      broken.messages.pop_back();
      EXPECT_THROW(session.announce(broken), PlanRefused);
      session.announce(next);
      EXPECT_EQ(message_of([&] { session.announce(plan); }),
                "announce on rank 0 (host local0): a plan is announced already, for iteration 3");
    }
    for (std::uint64_t i = 1; i <= 4; ++i) {
      trainer.iterate(i);
      EXPECT_EQ(digest(*session.plan()), digest(i < 3 ? plan : next));
      EXPECT_FALSE(session.refusal());
    }
    session.leave();
  });
  on_ranks(1, [](Transport& transport) {
    Trainer trainer(transport, kTensors, 1);
    trainer.session().adopt(random_plan(1, kTensors, 1, AllReduce{}));
    EXPECT_THAT(message_of([&] { trainer.session().announce(random_plan(2, kTensors, 1, AllReduce{})); }),
                HasSubstr("must be said beforehand, by SessionOptions::announced_plans"));
    trainer.session().leave();
  });
}

TEST(Session, OfOneRankAnnouncesToItself) {
  on_ranks(1, [](Transport& transport) {
    Trainer trainer(transport, kTensors, 1, with_announcements());
    trainer.session().adopt(random_plan(1, kTensors, 1, AllReduce{}));
    const Announcements announcements = {{1, random_plan(2, kTensors, 1, AllReduce{})}};
    EXPECT_EQ(train(trainer, announcements, 5).switches.size(), 1U);
    trainer.session().leave();
  });
}

TEST(Session, RanksAgreeWhetherPlansMayBeAnnounced) {
  on_ranks(2, [](Transport& transport) {
    const SessionOptions options = transport.peers().rank == 0 ? with_announcements() : SessionOptions{};
    EXPECT_THAT(message_of([&] { const Trainer trainer(transport, kTensors, 2, options); }),
                HasSubstr("ranks disagree about the plans: rank"));
  });
}

TEST(Session, ARankThatIsGoneEndsTheWaitForItsAnswer) {
  // Rank 1 leaves between an announcement and its answer at the latest, so rank 0 cannot go on.
  std::latch all_know(2);
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        Trainer trainer(*transport, kTensors, 2, with_announcements());
        Session& session = trainer.session();
        session.adopt(random_plan(3, kTensors, 2, AllReduce{}));
        try {
          trainer.iterate(1);
          if (session.rank() == 1) session.abort("out of memory");
          if (session.rank() == 0) {
            session.announce(random_plan(4, kTensors, 2, AllReduce{}));
            for (std::uint64_t i = 2; i < 5; ++i) trainer.iterate(i);
          }
          EXPECT_EQ(session.rank(), 1);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
          EXPECT_STREQ(error.what(), "rank 1 (host local0) ended the run: out of memory");
        }
        all_know.arrive_and_wait();
      },
      2);
}

TEST(Session, RanksWhoseTensorsDifferDoNotBegin) {
  std::mutex mutex;
  std::vector<std::string> texts;
  on_ranks(2, [&](Transport& transport) {
    Profile profile = kTensors;
    if (transport.peers().rank == 1) profile.layers[2].tensors[0].name = "another";
    try {
      const Trainer trainer(transport, profile, 2);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      const std::lock_guard lock(mutex);
      texts.emplace_back(error.what());
    }
  });
  EXPECT_THAT(texts,
              Each(std::string("ranks disagree about the tensor number 2: rank 1 (host local1) has another "
                               "of 80 B, rank 0 (host local0) has layer2.weight of 80 B")));
}

TEST(Session, SaysThatAPlanIsMissing) {
  on_ranks(1, [](Transport& transport) {
    Trainer trainer(transport, kTensors, 1);
    EXPECT_THROW(trainer.session().begin_iteration(), Error);
    EXPECT_THROW(trainer.session().ready(0), Error);
    trainer.session().leave();
  });
}

// ---- Failure ----

TEST(Session, ARankThatLeavesBecauseOfAnErrorSaysWhy) {
  std::latch all_know(3);
  on_bootstraps(
      3,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        Trainer trainer(*transport, kTensors, 3);
        trainer.session().adopt(random_plan(3, kTensors, 3, AllReduce{}));
        try {
          trainer.iterate(1);
          if (trainer.session().rank() == 1) trainer.session().abort("the loss is not a number");
          if (trainer.session().rank() != 1) trainer.iterate(2);
          EXPECT_EQ(trainer.session().rank(), 1);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
          EXPECT_STREQ(error.what(), "rank 1 (host local0) ended the run: the loss is not a number");
        }
        all_know.arrive_and_wait();
      },
      3);
}

/// Ranks that wait for nothing do not see who dies, until they are told to look.
TEST(Session, LooksForRanksThatAreLost) {
  constexpr int kRanks = 4;
  std::latch all_know(kRanks - 1);
  on_bootstraps(
      kRanks,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        Trainer trainer(*transport, kTensors, kRanks);
        Session& session = trainer.session();
        session.look_for_lost(Seconds{0.02});
        session.adopt(random_plan(3, kTensors, kRanks, AllReduce{}));
        trainer.iterate(1);
        session.look_for_lost(Seconds{0.02});
        trainer.iterate(2);
        if (session.rank() == 2) return;  // without a word
        try {
          session.look_for_lost(Seconds{60});
          ADD_FAILURE() << "nobody was seen to be lost";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
          EXPECT_THAT(error.what(), StartsWith("lost rank 2 (host local0): "));
        }
        all_know.arrive_and_wait();
      },
      kRanks);
}

}  // namespace
}  // namespace commtune::tests
