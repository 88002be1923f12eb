// Gradients that are cast while they travel: whatever the road, every rank ends with the bits that a serial
// reference has, which divides, casts and sums in the order of that road.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "executor/engine/engine.h"
#include "executor/memory/reduce.h"
#include "executor/roads/all_reduce/double_binary_tree.h"
#include "executor/roads/parameter_server/pushers.h"
#include "executor/roads/steps.h"
#include "perfmodel/base/overloaded.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using Bytes16 = std::vector<std::byte>;  // of one of the short types
using Floats = std::vector<float>;

/// What one message is on every rank, cast; summed one addition after the other.
class Reference {
 public:
  Reference(DataType type, const HostLayout& hosts, std::vector<Bytes16> ranks)
      : type_(type), hosts_(hosts), ranks_(std::move(ranks)), sum_(ranks_.front().size()) {}

  Bytes16 of(const Road& road) {
    match(
        road, [&](const AllReduce& all) { all_reduce(all.algorithm); },
        [&](const ParameterServer& servers) { by_servers(servers); });
    return sum_;
  }

 private:
  static constexpr std::size_t kElement = 2;
  using Terms = std::vector<Bytes16>;

  int workers() const { return static_cast<int>(ranks_.size()); }
  Range whole() const { return {0, sum_.size()}; }
  static Range inside(Range range, int parts, int index) {
    const Range part = segment(range.length, kElement, parts, index);
    return {range.offset + part.offset, part.length};
  }
  static std::span<std::byte> at(Bytes16& bytes, Range range) {
    return std::span(bytes).subspan(range.offset, range.length);
  }
  void add_to(Bytes16& into, Bytes16& from, Range range) const {
    add(type_, at(into, range), at(from, range));
  }

  /// The terms from `first` on, around to the one before it.
  void in_turn(Terms& terms, Range range, int first) {
    const auto n = static_cast<int>(terms.size());
    Bytes16 sum = terms[static_cast<std::size_t>(first)];
    for (int i = 1; i < n; ++i) add_to(sum, terms[static_cast<std::size_t>((first + i) % n)], range);
    keep(sum, range);
  }
  void ring(Terms& terms, Range range) {
    const auto n = static_cast<int>(terms.size());
    for (int j = 0; j < n; ++j) in_turn(terms, inside(range, n, j), j);
  }
  void keep(Bytes16& from, Range range) {
    const std::span<std::byte> what = at(from, range);
    std::copy(what.begin(), what.end(), at(sum_, range).begin());
  }

  /// Partners at these distances add the same two numbers.
  void by_distances(const std::vector<int>& distances) {
    const auto size = static_cast<std::size_t>(folded_size(workers()));
    Terms values(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(size));
    for (std::size_t i = size; i < ranks_.size(); ++i) add_to(values[i - size], ranks_[i], whole());
    for (const int distance : distances) {
      Terms next = values;
      for (std::size_t i = 0; i < size; ++i)
        add_to(next[i], values[i ^ static_cast<std::size_t>(distance)], whole());
      values = std::move(next);
    }
    keep(values.front(), whole());
  }
  std::vector<int> distances() const {
    std::vector<int> found;
    for (int distance = 1; distance < folded_size(workers()); distance *= 2) found.push_back(distance);
    return found;
  }

  Bytes16 tree_sum(int tree, int rank, Range range) {
    Bytes16 sum = ranks_[static_cast<std::size_t>(rank)];
    for (const int child : tree_node(tree, workers(), rank).children) {
      if (child < 0) continue;
      Bytes16 below = tree_sum(tree, child, range);
      add_to(sum, below, range);
    }
    return sum;
  }
  void trees() {
    for (const int tree : {0, 1}) {
      int root = 0;
      while (tree_node(tree, workers(), root).parent >= 0) ++root;
      const Range half = inside(whole(), 2, tree);
      Bytes16 sum = tree_sum(tree, root, half);
      keep(sum, half);
    }
  }

  /// Each host's sum of a part: its owner's own first, then the others in rank order.
  Terms host_sums(int part, Range range) {
    Terms sums;
    for (int host = 0; host < hosts_.worker_hosts(); ++host) {
      const std::span<const int> here = hosts_.workers_of(host);
      const int owner = here[static_cast<std::size_t>(part)];
      Bytes16 sum = ranks_[static_cast<std::size_t>(owner)];
      for (const int worker : here) {
        if (worker != owner) add_to(sum, ranks_[static_cast<std::size_t>(worker)], range);
      }
      sums.push_back(std::move(sum));
    }
    return sums;
  }
  void hierarchical() {
    for (int part = 0; part < hosts_.smallest(); ++part) {
      const Range range = inside(whole(), hosts_.smallest(), part);
      Terms sums = host_sums(part, range);
      ring(sums, range);
    }
  }

  void all_reduce(Collective algorithm) {
    std::vector<int> by_two = distances();
    switch (algorithm) {
      case Collective::kRing:
        return ring(ranks_, whole());
      case Collective::kHalvingDoubling:
        std::reverse(by_two.begin(), by_two.end());
        return by_distances(by_two);
      case Collective::kRecursiveDoubling:
        return by_distances(by_two);
      case Collective::kOneShot:
        return in_turn(ranks_, whole(), 0);
      case Collective::kDoubleBinaryTree:
        return trees();
      case Collective::kHierarchical:
        return hierarchical();
      case Collective::kLibrary:
        break;
    }
    FAIL() << "a library's order is its own";
  }

  void by_servers(const ParameterServer& road) {
    if (road.local_sum == LocalSum::kNone) return in_turn(ranks_, whole(), 0);
    for (int part = 0; part < hosts_.smallest(); ++part) {
      const Range range = inside(whole(), hosts_.smallest(), part);
      Terms sums = host_sums(part, range);
      in_turn(sums, range, 0);
    }
  }

  const DataType type_;
  const HostLayout& hosts_;
  Terms ranks_;
  Bytes16 sum_;
};

/// A job's gradients on one rank: numbers of any size whose sums are not exact.
std::vector<Floats> random_gradients(const Profile& profile, int rank, std::uint64_t iteration) {
  std::mt19937_64 random(1000 * iteration + static_cast<std::uint64_t>(rank));
  std::normal_distribution<float> normal(0, 3);
  std::vector<Floats> gradients;
  for (const TensorRef& tensor : tensors_of(profile)) {
    gradients.emplace_back(tensor.bytes.count / sizeof(float));
    for (float& each : gradients.back()) each = std::exp(normal(random)) * normal(random);
  }
  return gradients;
}

/// A message's elements out of all tensors, or back into them.
template <typename Each>
void walk(const Message& message, const Each& each) {
  std::size_t at = 0;
  for (const Piece& piece : message.pieces) {
    const std::size_t first = piece.offset.count / sizeof(float);
    for (std::size_t i = 0; i < piece.length.count / sizeof(float); ++i) each(piece.tensor, first + i, at++);
  }
}

Bytes16 cast_message(const Message& message, const std::vector<Floats>& gradients, DataType type,
                     float factor) {
  Bytes16 bytes(message_bytes(message).count / 2);
  walk(message, [&](TensorId tensor, std::size_t i, std::size_t at) {
    set_element(type, bytes, at, gradients[tensor][i] * factor);
  });
  return bytes;
}

struct Job {
  Profile profile;
  Plan plan;
  Result result = Result::kMean;
};

/// What every rank must end with.
std::vector<Floats> expected(const Job& job, const HostLayout& hosts, std::uint64_t iteration) {
  const DataType type = wire_type(job.plan.wire, DataType::kFloat32);
  const float factor = job.result == Result::kMean ? 1.0F / static_cast<float>(job.plan.workers) : 1.0F;
  std::vector<std::vector<Floats>> all;
  all.reserve(static_cast<std::size_t>(job.plan.workers));
  for (int rank = 0; rank < job.plan.workers; ++rank)
    all.push_back(random_gradients(job.profile, rank, iteration));
  std::vector<Floats> results = all.front();
  for (const Message& message : job.plan.messages) {
    std::vector<Bytes16> ranks;
    ranks.reserve(all.size());
    for (const auto& gradients : all) ranks.push_back(cast_message(message, gradients, type, factor));
    const Bytes16 sum = Reference(type, hosts, std::move(ranks)).of(job.plan.road);
    walk(message, [&](TensorId tensor, std::size_t i, std::size_t at) {
      results[tensor][i] = element(type, sum, at);
    });
  }
  return results;
}

EngineOptions options_for(const Job& job) {
  EngineOptions options;
  options.road = make_settings(job.plan, job.profile.type, job.result, with_chunk({}, Bytes{1024}));
  options.timeout = Seconds{100};
  return options;
}

/// One rank with an engine of its own.
class WireRank {
 public:
  WireRank(Transport& transport, const Job& job)
      : job_(job),
        communicator_(transport),
        memory_(random_gradients(job.profile, transport.peers().rank, 0)),
        engine_(communicator_, job.plan, layout_of(job.profile), trains() ? gradients() : Gradients{},
                options_for(job)) {}

  bool trains() const { return communicator_.rank() < job_.plan.workers; }
  std::vector<Floats>& memory() { return memory_; }
  Engine& engine() { return engine_; }
  void iterate() {
    const TensorRange all{0, static_cast<TensorId>(memory_.size())};
    engine_.begin_iteration();
    engine_.ready(all);
    engine_.wait(all, Clock::now());
  }

 private:
  Gradients gradients() {
    Gradients all;
    all.reserve(memory_.size());
    for (Floats& each : memory_) all.push_back(std::as_writable_bytes(std::span(each)));
    return all;
  }

  const Job& job_;
  Communicator communicator_;
  std::vector<Floats> memory_;
  Engine engine_;
};

void expect_same_bits(const std::vector<Floats>& got, const std::vector<Floats>& wanted) {
  for (std::size_t tensor = 0; tensor < wanted.size(); ++tensor) {
    for (std::size_t i = 0; i < wanted[tensor].size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[tensor][i]), std::bit_cast<std::uint32_t>(wanted[tensor][i]))
          << "tensor " << tensor << "[" << i << "]: " << got[tensor][i] << ", not " << wanted[tensor][i];
    }
  }
}

const Profile kOddTensors = profile_of({1, 7, 3001, 20, 4096, 513});

class CastOnEveryRoad : public ::testing::TestWithParam<int> {};

TEST_P(CastOnEveryRoad, SumsAsTheRoadDoesToTheBit) {
  const int workers = GetParam();
  for (const Road& road : roads_for(workers)) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Job job{kOddTensors, random_plan(seed, kOddTensors, workers, road), Result::kMean};
      job.plan.wire = seed % 2 == 0 ? WireFormat::kBfloat16 : WireFormat::kFloat16;
      if (seed > 2) job.result = Result::kSum;
      const int ranks_per_host = 1 + static_cast<int>(seed % 3);
      SCOPED_TRACE(fmt::format("{}, {}, seed {}", describe(road), to_string(job.plan.wire), seed));
      const HostLayout hosts(local_peers(ranks_of(job.plan), ranks_per_host), workers);
      const std::vector<std::vector<Floats>> wanted = {expected(job, hosts, 1), expected(job, hosts, 2)};
      on_ranks(ranks_of(job.plan),
               [&](Transport& transport) {
                 WireRank rank(transport, job);
                 for (std::uint64_t iteration = 1; rank.trains() && iteration <= 2; ++iteration) {
                   const auto values = random_gradients(kOddTensors, transport.peers().rank, iteration);
                   for (std::size_t i = 0; i < values.size(); ++i)
                     std::copy(values[i].begin(), values[i].end(), rank.memory()[i].begin());
                   rank.iterate();
                   expect_same_bits(rank.memory(), wanted[iteration - 1]);
                 }
                 rank.engine().finish();
               },
               {.ranks_per_host = ranks_per_host});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, CastOnEveryRoad, ::testing::Values(1, 2, 3, 5, 6, 8),
                         ::testing::PrintToStringParamName());

/// All that the ranks of a job send in an iteration.
std::uint64_t sent_by_all(const Job& job) {
  std::atomic<std::uint64_t> all{0};
  on_ranks(ranks_of(job.plan), [&](Transport& transport) {
    WireRank rank(transport, job);
    if (rank.trains()) rank.iterate();
    rank.engine().finish();
    all += rank.engine().counts().sent;
  });
  return all;
}

TEST(WireFormat, HasHalfTheBytesOnTheWire) {
  for (const int workers : {2, 3, 4}) {
    for (const Road& road : roads_for(workers)) {
      SCOPED_TRACE(describe(road));
      Job job{kOddTensors, wait_free_plan(kOddTensors, workers, road)};
      const std::uint64_t plain = sent_by_all(job);
      EXPECT_GT(plain, kOddTensors.gradient_bytes().count / 2);
      for (const WireFormat wire : {WireFormat::kBfloat16, WireFormat::kFloat16}) {
        job.plan.wire = wire;
        EXPECT_EQ(2 * sent_by_all(job), plain) << to_string(wire);
      }
    }
  }
}

/// A ring of 4: each rank sends 2 (N-1)/N of a message, all of them 6 times its 2 B per element.
TEST(WireFormat, CountsWhatARingSends) {
  const Profile profile = profile_of({4000});
  Job job{profile, wait_free_plan(profile, 4, AllReduce{Collective::kRing})};
  job.plan.wire = WireFormat::kBfloat16;
  EXPECT_EQ(sent_by_all(job), 6U * 2 * 4000);
}

/// Elements whose sum overflowed, by what every one of two ranks has.
std::uint64_t overflows_of(WireFormat wire, Result result, float value) {
  const Profile profile = profile_of({100, 30});
  Job job{profile, wait_free_plan(profile, 2, AllReduce{}), result};
  job.plan.wire = wire;
  std::atomic<std::uint64_t> counted{0};
  on_ranks(2, [&](Transport& transport) {
    WireRank rank(transport, job);
    for (Floats& each : rank.memory()) std::fill(each.begin(), each.end(), 1.0F);
    rank.memory()[0][17] = value;
    rank.iterate();
    rank.engine().finish();
    if (transport.peers().rank == 1) counted = rank.engine().counts().overflows;
  });
  return counted;
}

TEST(WireFormat, CountsWhatFloat16HasNoRoomFor) {
  // Up to 65504. A mean divides first: 60000 / 2 + 60000 / 2 fits, 140000 / 2 does not.
  EXPECT_EQ(overflows_of(WireFormat::kFloat16, Result::kMean, 60000), 0U);
  EXPECT_EQ(overflows_of(WireFormat::kFloat16, Result::kMean, 140000), 1U);
  EXPECT_EQ(overflows_of(WireFormat::kFloat16, Result::kSum, 60000), 1U);
  EXPECT_EQ(overflows_of(WireFormat::kBfloat16, Result::kSum, 60000), 0U);
  // Nothing that was finite became infinite.
  EXPECT_EQ(overflows_of(WireFormat::kFloat16, Result::kSum, INFINITY), 0U);
}

}  // namespace
}  // namespace commtune::tests
