// What the executor costs on the links it is given, against bare MPI calls of the same sizes. Run by mpirun,
// one measurement a line; tests/bench/executor runs it and sums up.

#include <fmt/format.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/collectives/library_queue.h"
#include "executor/collectives/registry/libraries.h"
#include "executor/engine/link_share.h"
#include "executor/roads/all_reduce/all_reduce.h"
#include "executor/roads/parameter_server/parameter_server.h"
#include "executor/roads/road.h"
#include "executor/session/exchange.h"
#include "executor/transport/communicator.h"
#include "executor/transport/mpi/mpi.h"
#include "executor/transport/tcp/tcp.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

using Floats = std::vector<float>;

double now() { return 1e-9 * static_cast<double>(Clock::now().time_since_epoch().count()); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct Timing {
  double median = 0, p95 = 0;
  double cpu_share = 0;  // of one core, of this rank
  int repetitions = 0;
};

Deadline soon() { return Clock::now() + std::chrono::seconds(60); }

/// The slowest rank's time of each repetition, their median; as many as fit into the budget.
/// align  makes the ranks begin together, in the way of what is measured: ranks that wait in a call of the
///        library's own would take the cores that the executor's threads leave idle
Timing measure(const std::function<void()>& align, const std::function<void()>& operation, double budget,
               int most = 200) {
  operation();
  align();
  double start = now();
  operation();
  double once = now() - start;
  align();  // a rank that is done may still serve others, which it does not inside a call of the library
  MPI_Allreduce(MPI_IN_PLACE, &once, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  Timing timing;
  timing.repetitions = std::clamp(static_cast<int>(budget / once), 5, most);
  std::vector<double> times;
  double cpu = 0;
  double wall = 0;
  for (int i = 0; i < timing.repetitions; ++i) {
    align();
    const double cpu_start = cpu_seconds();
    start = now();
    operation();
    times.push_back(now() - start);
    cpu += cpu_seconds() - cpu_start;
    wall += times.back();
  }
  align();
  MPI_Allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX,
                MPI_COMM_WORLD);
  std::sort(times.begin(), times.end());
  timing.median = times[times.size() / 2];
  timing.p95 = times[times.size() * 95 / 100];
  timing.cpu_share = cpu / wall;
  return timing;
}

struct Settings {
  RoadSettings road;
  double budget = 0.5;
  double pace = 0;  // bytes a second that a rank sends to other hosts at most; 0: as many as the kernel will
};

class Bench {
 public:
  Bench(Transport& transport, const Settings& settings)
      : communicator_(transport),
        hosts_(communicator_.peers(), communicator_.size()),
        scratch_(1 << 20),
        settings_(settings),
        rank_(communicator_.rank()) {
    settings_.road.workers = communicator_.size();
    settings_.road.result = Result::kSum;
  }

  /// Bus bandwidth of an all-reduce in GB/s.
  double bus(std::size_t bytes, double time) const {
    const double n = communicator_.size();
    return 2 * (n - 1) / n * static_cast<double>(bytes) / time * 1e-9;
  }

  Timing all_reduce(Collective collective, std::size_t bytes) {
    pace(AllReduce{collective});
    Floats data(bytes / 4, 1.0F);
    const AllReduceAlgorithm with = algorithm(collective);
    const auto once = [&] { communicator_.run(with.all_reduce(message(1, data)), soon()); };
    once();
    check(data, static_cast<float>(communicator_.size()));
    std::fill(data.begin(), data.end(), 0.0F);
    return measured(once);
  }

  Timing push_pull_all(const ParameterServer& road, std::size_t bytes) {
    pace(road);
    Floats data(bytes / 4, 1.0F);
    std::optional<Server> server;
    if (server_of(road, settings_.road.workers, rank_) >= 0) {
      server.emplace(communicator_, scratch_, settings_.road, hosts_, road,
                     std::vector<std::size_t>{0, bytes});
      server->start();
    }
    const auto once = [&] {
      communicator_.run(push_pull(message(1, data), road, server ? &*server : nullptr), soon());
    };
    once();
    check(data, static_cast<float>(communicator_.size()));
    std::fill(data.begin(), data.end(), 0.0F);
    const Timing timing = measured(once);
    communicator_.run(say_goodbye(communicator_, settings_.road, road), soon());
    while (server && !server->finished()) communicator_.progress(soon());
    return timing;
  }

  /// Several rings under way at once, `flight` at a time until `count` are done; per message.
  Timing overlapped_rings(std::size_t bytes, int flight, int count) {
    std::vector<Floats> data(static_cast<std::size_t>(count), Floats(bytes / 4, 0.0F));
    std::uint32_t next = 0;
    const auto lane = [&]() -> Task {
      while (next < static_cast<std::uint32_t>(count)) {
        const std::uint32_t number = next++;
        co_await algorithm(Collective::kRing).all_reduce(message(number, data[number]));
      }
    };
    const auto all = [&]() -> Task {
      next = 0;
      std::vector<Task> lanes;
      lanes.reserve(static_cast<std::size_t>(flight));
      for (int i = 0; i < flight; ++i) lanes.push_back(lane());
      for (Task& task : lanes) task.start();
      for (Task& task : lanes) co_await task.ended();
    };
    return divided(measured([&] { communicator_.run(all(), soon()); }), count);
  }

  /// The library's blocking all-reduce, with whichever algorithm it was told to use.
  Timing bare_all_reduce(std::size_t bytes) {
    Floats in(bytes / 4, 0.0F);
    Floats out(bytes / 4);
    return measured_bare([&] {
      MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
  }

  /// Half a round trip between ranks 0 and 1; the others wait in a barrier of the same kind.
  Timing ping_pong(std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    const Tag tag = make_tag(TagSpace::kReduce, 2);
    const auto trip = [&]() -> Task {
      const int peer = 1 - rank_;
      if (rank_ == 0) co_await communicator_.send(peer, tag, data);
      co_await communicator_.receive(peer, tag, data);
      if (rank_ == 1) co_await communicator_.send(peer, tag, data);
    };
    return halved(measured([&] {
      if (rank_ < 2) communicator_.run(trip(), soon());
    }));
  }

  Timing bare_ping_pong(std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    const int count = static_cast<int>(bytes);
    return halved(measured_bare([&] {
      if (rank_ > 1) return;
      if (rank_ == 0) MPI_Send(data.data(), count, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(data.data(), count, MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank_ == 1) MPI_Send(data.data(), count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }));
  }

  /// Many messages one way from rank 0 to rank 1, per message: what the executor adds to each.
  Timing stream(std::size_t bytes, int count) {
    std::vector<std::byte> data(bytes * static_cast<std::size_t>(count));
    const auto all = [&]() -> Task {
      Group group;
      for (int i = 0; i < count; ++i) {
        const auto part = std::span(data).subspan(static_cast<std::size_t>(i) * bytes, bytes);
        if (rank_ == 0) communicator_.send(1, make_tag(TagSpace::kReduce, 3), part, group);
        if (rank_ == 1) communicator_.receive(0, make_tag(TagSpace::kReduce, 3), part, group);
      }
      co_await group.empty();
    };
    return divided(measured([&] {
                     if (rank_ < 2) communicator_.run(all(), soon());
                   }),
                   count);
  }

  Timing bare_stream(std::size_t bytes, int count) {
    std::vector<std::byte> data(bytes * static_cast<std::size_t>(count));
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
    const auto all = [&] {
      if (rank_ > 1) return;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        std::byte* at = data.data() + i * bytes;
        if (rank_ == 0) MPI_Isend(at, static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        if (rank_ == 1) MPI_Irecv(at, static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    };
    return divided(measured_bare(all), count);
  }

  /// From wake() on one thread to the return of wait() on another.
  Timing wake_up() {
    std::vector<double> times;
    Transport& transport = communicator_.transport();
    for (int i = 0; i < 200; ++i) {
      double woken = 0;
      std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        woken = now();
        transport.wake();
      });
      transport.wait(soon());
      const double back = now();
      other.join();
      times.push_back(back - woken);
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times[times.size() * 95 / 100], 0, 200};
  }

  /// CPU share of one core while nothing happens for a second; with or without a receive posted.
  double idle_share(bool posted) {
    std::byte in{};
    const std::byte out{};
    const Tag tag = make_tag(TagSpace::kReduce, 4);
    const int n = communicator_.size();
    MPI_Barrier(MPI_COMM_WORLD);
    Group group;
    if (posted) communicator_.receive((rank_ + n - 1) % n, tag, std::span(&in, 1), group);
    const double cpu = cpu_seconds();
    const Deadline end = Clock::now() + std::chrono::seconds(1);
    while (Clock::now() < end) communicator_.progress(end);
    const double share = cpu_seconds() - cpu;
    if (posted) {
      communicator_.send((rank_ + 1) % n, tag, std::span(&out, 1), group);
      while (group.pending() > 0) communicator_.progress(soon());
    }
    return share;
  }

  /// What a ring of this size keeps in memory beside the data: receive blocks, and the transport's own.
  double memory_beside(std::size_t bytes) {
    const auto resident = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return static_cast<double>(usage.ru_maxrss) * 1024;
    };
    Floats data(bytes / 4, 1.0F);
    const double before = resident();
    communicator_.run(algorithm(Collective::kRing).all_reduce(message(1, data)), soon());
    return resident() - before;
  }

  int rank() const { return rank_; }

 private:
  /// As a plan on this road would have it.
  void pace(const Road& road) {
    if (settings_.pace <= 0) return;
    communicator_.transport().set_pace(settings_.pace);
    communicator_.set_shares(link_shares(road, hosts_, rank_));
  }

  Timing measured(const std::function<void()>& operation) {
    return measure([&] { barrier(communicator_, soon()); }, operation, settings_.budget);
  }
  Timing measured_bare(const std::function<void()>& operation) const {
    return measure([] { MPI_Barrier(MPI_COMM_WORLD); }, operation, settings_.budget);
  }
  RoadMessage message(std::uint32_t number, Floats& data) {
    return {communicator_, scratch_, settings_.road, hosts_,   number,
            memory(data),  nullptr,  nullptr,        library()};
  }
  LibraryPlace place() {
    return {communicator_, [this](const std::string& text) { return broadcast(communicator_, text, soon()); },
            soon()};
  }
  /// Made when it is first needed: not every transport has one beside it.
  LibraryQueue* library() {
    if (!library_ && !why_no_library({}, communicator_)) {
      library_ = make_library({}, place(), communicator_.size());
      collectives_.emplace(communicator_, *library_);
    }
    return collectives_ ? &*collectives_ : nullptr;
  }
  static std::span<std::byte> memory(Floats& data) { return std::as_writable_bytes(std::span(data)); }
  static Timing halved(Timing timing) { return divided(timing, 2); }
  static Timing divided(Timing timing, int by) {
    timing.median /= by;
    timing.p95 /= by;
    return timing;
  }
  static void check(const Floats& data, float expected) {
    for (const float value : data) {
      if (value != expected)
        throw Error(ErrorCode::kConflict, fmt::format("sum = {}: must be {}", value, expected));
    }
  }

  Communicator communicator_;
  const HostLayout hosts_;
  Scratch scratch_;
  Settings settings_;
  const int rank_;
  std::unique_ptr<CollectiveLibrary> library_;
  std::optional<LibraryQueue> collectives_;
};

std::string row(std::size_t bytes, const Timing& timing, double bandwidth) {
  return fmt::format("{:>10} B {:>12.1f} us p95 {:>12.1f} us {:>8.4f} GB/s cpu {:>5.1f} % n {}", bytes,
                     timing.median * 1e6, timing.p95 * 1e6, bandwidth, timing.cpu_share * 100,
                     timing.repetitions);
}

void run(Bench& bench, const std::string& what, const std::vector<std::size_t>& sizes) {
  const auto print = [&](const std::string& text) {
    if (bench.rank() == 0) {
      fmt::print("{:<24} {}\n", what, text);
      std::fflush(stdout);
    }
  };
  static const std::vector<std::pair<std::string, Collective>> kCollectives = {
      {"ring", Collective::kRing},
      {"halving-doubling", Collective::kHalvingDoubling},
      {"recursive-doubling", Collective::kRecursiveDoubling},
      {"one-shot", Collective::kOneShot},
      {"double-binary-tree", Collective::kDoubleBinaryTree},
      {"hierarchical", Collective::kHierarchical},
      {"library", Collective::kLibrary}};
  if (what == "idle") {
    print(fmt::format("CPU of one core while idle {:.2f} %, with a receive posted {:.2f} %",
                      100 * bench.idle_share(false), 100 * bench.idle_share(true)));
    return;
  }
  if (what == "wake") {
    const Timing timing = bench.wake_up();
    print(fmt::format("{:.1f} us p95 {:.1f} us", timing.median * 1e6, timing.p95 * 1e6));
    return;
  }
  for (const std::size_t bytes : sizes) {
    if (what == "memory")
      print(fmt::format("{:>10} B {:.0f} B beside the data", bytes, bench.memory_beside(bytes)));
    for (const auto& [name, collective] : kCollectives) {
      if (what != name) continue;
      const Timing timing = bench.all_reduce(collective, bytes);
      print(row(bytes, timing, bench.bus(bytes, timing.median)));
    }
    const double size = static_cast<double>(bytes);
    if (what == "mpi") {
      const Timing timing = bench.bare_all_reduce(bytes);
      print(row(bytes, timing, bench.bus(bytes, timing.median)));
    } else if (what.starts_with("ps")) {
      const Timing timing =
          bench.push_pull_all({std::stoi(what.substr(2)), Placement::kColocated, Assignment::kEven}, bytes);
      print(row(bytes, timing, bench.bus(bytes, timing.median)));
    } else if (what.starts_with("flight")) {
      const Timing timing = bench.overlapped_rings(bytes, std::stoi(what.substr(6)), 32);
      print(row(bytes, timing, bench.bus(bytes, timing.median)));
    } else if (what == "pingpong") {
      const Timing timing = bench.ping_pong(bytes);
      print(row(bytes, timing, size / timing.median * 1e-9));
    } else if (what == "mpi-pingpong") {
      const Timing timing = bench.bare_ping_pong(bytes);
      print(row(bytes, timing, size / timing.median * 1e-9));
    } else if (what == "stream") {
      const Timing timing = bench.stream(bytes, 64);
      print(row(bytes, timing, size / timing.median * 1e-9));
    } else if (what == "mpi-stream") {
      const Timing timing = bench.bare_stream(bytes, 64);
      print(row(bytes, timing, size / timing.median * 1e-9));
    }
  }
}

}  // namespace
}  // namespace commtune

/// executor_bench [--network mpi|tcp] [--chunk B] [--uncut B] [--cuts N] [--window N] [--budget S]
///                [--pace B/s] WHAT[,WHAT...] SIZE[,SIZE...]
int main(int argc, char** argv) {
  using namespace commtune;
  Settings settings;
  bool tcp = false;
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto split = [](const std::string& text) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
      if (c == ',') {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  };
  while (words.size() >= 2 && words[0].starts_with("--")) {
    const std::string& value = words[1];
    if (words[0] == "--network") tcp = value == "tcp";
    if (words[0] == "--chunk") settings.road.chunk = parse_size(value);
    if (words[0] == "--uncut") settings.road.uncut = parse_size(value);
    if (words[0] == "--cuts") settings.road.cuts = std::stoi(value);
    if (words[0] == "--window") settings.road.window = std::stoi(value);
    if (words[0] == "--budget") settings.budget = std::stod(value);
    if (words[0] == "--pace") settings.pace = std::stod(value);
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty()) return 2;
  std::vector<std::size_t> sizes;
  if (words.size() > 1) {
    for (const std::string& size : split(words[1])) sizes.push_back(parse_size(size).count);
  }
  const auto transport = tcp ? make_tcp_transport(join_mpi_job()) : make_mpi_transport();
  transport->limit_messages({.longest = 1024_MiB, .early = 4096_MiB});  // whatever sizes are asked for
  try {
    Bench bench(*transport, settings);
    for (const std::string& what : split(words[0])) run(bench, what, sizes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    transport->abort(error.what());
  }
  return 0;
}
