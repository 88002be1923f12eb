#include "executor/roads/parameter_server/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "executor/roads/parameter_server/local_sum.h"
#include "executor/roads/pipeline.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// A push with this number is a worker's goodbye.
constexpr std::uint32_t kGoodbye = kTagNumbers - 2;

/// How many workers are between the first colocated server's and this one.
int places_after_first(const ParameterServer& road, int workers, int worker) {
  return (worker - road.first + workers) % workers;
}

/// How a part of a message is laid out over the servers.
struct Layout {
  const ParameterServer& road;
  const RoadSettings& settings;
  std::uint32_t number;
  std::size_t bytes;

  /// Server s's slice; empty where it has none.
  Range slice_of(int server) const {
    if (road.assignment == Assignment::kEven)
      return segment(bytes, element_size(settings.type).count, road.servers, server);
    return server == taker() ? Range{0, bytes} : Range{};
  }
  /// The server that takes the message whole.
  int taker() const {
    const auto in_turn = number % static_cast<std::uint32_t>(road.servers);
    return static_cast<int>(settings.server.empty() ? in_turn : settings.server[number]);
  }
  std::size_t chunk_bytes() const {
    return settings.chunk_for(bytes, road.assignment == Assignment::kEven ? road.servers : 1);
  }
  std::size_t chunks_of(int server) const { return chunks(slice_of(server).length, chunk_bytes()); }
  std::size_t most_chunks() const {
    std::size_t most = 0;
    for (int server = 0; server < road.servers; ++server) most = std::max(most, chunks_of(server));
    return most;
  }
  Range chunk_of(int server, std::size_t index) const {
    return chunk(slice_of(server), chunk_bytes(), index);
  }
  /// The i-th server that a worker turns to: each starts with another one.
  int ith_server(int worker, int i) const {
    return (places_after_first(road, settings.workers, worker) + 1 + i) % road.servers;
  }
};

}  // namespace

int server_rank(const ParameterServer& road, int workers, int server) {
  return road.placement == Placement::kColocated ? (road.first + server) % workers : workers + server;
}

int server_of(const ParameterServer& road, int workers, int rank) {
  const bool colocated = road.placement == Placement::kColocated;
  if (colocated != (rank < workers)) return -1;
  const int server = colocated ? places_after_first(road, workers, rank) : rank - workers;
  return server < road.servers ? server : -1;
}

/// One chunk's sum: what has come from each worker and not been added yet.
struct Server::Sum {
  struct Part {
    Scratch::Block block;    // remote workers'
    Buffer data;             // empty: has not come
    Group* taken = nullptr;  // waits for its being added
  };
  std::vector<Part> parts;       // by worker
  std::span<const int> pushers;  // whose parts there are
  std::size_t next = 0;          // of them: whose part is to be added next
  bool busy = false;             // somebody adds to it
  bool complete = false;         // and waits for those before it to be answered
  Clock::time_point since;
  Scratch::Block total;
  Buffer result;
  Buffer own;  // the colocated worker's chunk
  Group* own_answered = nullptr;

  Part& next_part() { return parts[static_cast<std::size_t>(pushers[next])]; }
};

Server::Server(Communicator& communicator, Scratch& scratch, const RoadSettings& settings,
               const HostLayout& hosts, const ParameterServer& road, std::vector<std::size_t> message_bytes,
               Answers answers)
    : communicator_(communicator),
      scratch_(scratch),
      settings_(settings),
      road_(road),
      server_(server_of(road, settings.workers, communicator.rank())),
      pushers_(road, hosts),
      message_bytes_(std::move(message_bytes)),
      next_chunk_(static_cast<std::size_t>(settings.workers),
                  std::vector<std::size_t>(message_bytes_.size(), 0)),
      under_way_(message_bytes_.size()),
      first_arrival_(message_bytes_.size()),
      complete_chunks_(message_bytes_.size(), 0) {
  assert(server_ >= 0);
  const std::size_t element = element_size(settings_.type).count;
  for (std::uint32_t number = 0; number < message_bytes_.size(); ++number) {
    PartChunks begin{0};
    for (int part = 0; part < pushers_.parts(); ++part) {
      const Range range = segment(message_bytes_[number], element, pushers_.parts(), part);
      begin.push_back(begin.back() + Layout{road_, settings_, number, range.length}.chunks_of(server_));
    }
    under_way_[number].resize(begin.back());
    next_answer_.emplace_back(begin.size() - 1, 0);
    part_chunks_.push_back(std::move(begin));
  }
  if (answers == Answers::kAtOnce) return;
  std::vector<std::size_t> all_chunks;
  for (const PartChunks& begin : part_chunks_) all_chunks.push_back(begin.back());
  held_.emplace(communicator, settings.workers, all_chunks);
}

Server::~Server() = default;

void Server::start() {
  for (int worker = 0; worker < settings_.workers; ++worker) {
    if (worker == communicator_.rank()) continue;
    serving_.push_back(serve(worker));
    serving_.back().start();
  }
}

bool Server::finished() {
  bool all = true;
  for (const Task& task : serving_) {
    if (task.done()) {
      task.result();
    } else {
      all = false;
    }
  }
  return all && replies_.empty();
}

Task Server::serve(int worker) {
  struct Incoming {
    Transfer transfer;
    Scratch::Block block;
  };
  const std::size_t room = scratch_.block_bytes();
  Window<Incoming> window(settings_.window);
  const auto post = [&] {
    Incoming incoming{{}, scratch_.take()};
    incoming.transfer =
        communicator_.receive(worker, make_tag(TagSpace::kReduce, kAnyNumber), incoming.block.bytes(room));
    window.push(std::move(incoming));
  };
  while (!window.full()) post();
  // A worker says goodbye once for each receive that is still posted for it.
  while (!window.empty()) {
    Incoming incoming = window.pop();
    const Completion completion = co_await incoming.transfer;
    const std::uint32_t number = number_of(completion.tag);
    if (number == kGoodbye) continue;
    post();
    co_await arrived(worker, number, std::move(incoming.block), completion.bytes);
  }
}

Task Server::arrived(int worker, std::uint32_t number, Scratch::Block block, std::size_t bytes) {
  const int of_part = pushers_.part_of(worker);
  const auto p = static_cast<std::size_t>(of_part);
  const bool known = number < part_chunks_.size() && of_part >= 0;
  const std::size_t begin = known ? part_chunks_[number][p] : 0;
  const std::size_t end = known ? part_chunks_[number][p + 1] : 0;
  if (begin == end) {
    throw Error(ErrorCode::kConflict,
                fmt::format("{} pushed to message {}: the plan has it push nothing there",
                            describe(communicator_.peers(), worker), number));
  }
  if (held_ && bytes == 0) return held_->ask(worker, number);
  std::size_t& next = next_chunk_[static_cast<std::size_t>(worker)][number];
  const std::size_t index = begin + next;
  next = (next + 1) % (end - begin);
  Sum& sum = sum_of(number, index, of_part);
  Sum::Part& part = sum.parts[static_cast<std::size_t>(worker)];
  part.data = block.bytes(bytes);
  part.block = std::move(block);
  return advance(number, index, sum);
}

Task Server::offer(std::uint32_t number, std::size_t index, Buffer chunk, Group& answered) {
  const int part = pushers_.part_of(communicator_.rank());
  index += part_chunks_[number][static_cast<std::size_t>(part)];
  Sum& sum = sum_of(number, index, part);
  sum.own = chunk;
  sum.own_answered = &answered;
  sum.parts[static_cast<std::size_t>(communicator_.rank())].data = chunk;
  return advance(number, index, sum);
}

Task Server::offer_to_keep(std::uint32_t number, std::size_t index, Buffer chunk, Group& taken) {
  Sum& sum = sum_of(number, index, 0);
  Sum::Part& part = sum.parts[static_cast<std::size_t>(communicator_.rank())];
  part.data = chunk;
  part.taken = &taken;
  return advance(number, index, sum);
}

Task Server::ask_here(std::uint32_t number, std::vector<Buffer> into, Group& answered) {
  return held_->ask_here(number, std::move(into), answered);
}

Server::Sum& Server::sum_of(std::uint32_t number, std::size_t index, int part) {
  std::unique_ptr<Sum>& sum = under_way_[number][index];
  if (!sum) {
    if (idle_sums_.empty()) {
      sum = std::make_unique<Sum>();
      sum->parts.resize(static_cast<std::size_t>(settings_.workers));
    } else {
      sum = std::move(idle_sums_.back());
      idle_sums_.pop_back();
    }
    sum->pushers = pushers_.of(part);
    sum->since = Clock::now();
    if (first_arrival_[number] == Clock::time_point{}) first_arrival_[number] = sum->since;
  }
  return *sum;
}

Task Server::advance(std::uint32_t number, std::size_t index, Sum& sum) {
  if (sum.busy || sum.next_part().data.bytes == 0) return {};
  return add_up(number, index, sum);
}

Task Server::add_up(std::uint32_t number, std::size_t index, Sum& sum) {
  sum.busy = true;
  for (; sum.next < sum.pushers.size(); ++sum.next) {
    if (sum.next_part().data.bytes == 0) {
      sum.busy = false;
      co_return;
    }
    AsyncOperation adding = add_next(sum);
    if (!adding.has_ended()) co_await adding;
    Group* const taken = sum.next_part().taken;
    sum.next_part() = {};
    if (taken != nullptr) taken->release();
  }
  co_await divided(settings_, communicator_.operations(), sum.result);
  if (held_) co_return co_await keep(number, index);
  sum.complete = true;
  const PartChunks& begin = part_chunks_[number];
  const auto after = std::upper_bound(begin.begin(), begin.end(), index);
  co_await answer_complete(number, static_cast<std::size_t>(after - begin.begin()) - 1);
}

/// A worker that has its answer may push the same chunk of the next iteration: the sum makes room.
Task Server::keep(std::uint32_t number, std::size_t index) {
  std::unique_ptr<Sum> sum = std::move(under_way_[number][index]);
  log_chunk(number);
  PullReply& reply = replies_.start(std::move(sum->total));
  const Buffer result = sum->result;
  sum->next = 0;
  sum->busy = false;
  idle_sums_.push_back(std::move(sum));
  co_await held_->complete(number, index, reply, result);
}

Task Server::answer_complete(std::uint32_t number, std::size_t part) {
  const std::size_t begin = part_chunks_[number][part];
  const std::size_t count = part_chunks_[number][part + 1] - begin;
  std::size_t& next = next_answer_[number][part];
  while (under_way_[number][begin + next] && under_way_[number][begin + next]->complete) {
    // A worker that has its answer may push the same chunk of the next iteration: make room first.
    std::unique_ptr<Sum> sum = std::move(under_way_[number][begin + next]);
    next = (next + 1) % count;
    log_chunk(number);
    PullReply& reply = send_back(number, *sum);
    if (sum->own_answered != nullptr) {
      reply.sends.hold();  // its block is read until the copy has ended
      co_await communicator_.operations().copy(sum->own, sum->result);
      reply.sends.release();
      std::exchange(sum->own_answered, nullptr)->release();
    }
    sum->next = 0;
    sum->busy = sum->complete = false;
    idle_sums_.push_back(std::move(sum));
  }
}

AsyncOperation Server::add_next(Sum& sum) {
  Sum::Part& part = sum.next_part();
  if (sum.next > 0) return communicator_.operations().add(settings_.type, sum.result, part.data);
  if (part.block.valid()) {
    sum.total = std::move(part.block);
    sum.result = part.data;
    return {};
  }
  sum.total = scratch_.take();
  sum.result = sum.total.bytes(part.data.bytes);
  return communicator_.operations().copy(sum.result, part.data);
}

void Server::log_chunk(std::uint32_t number) {
  if (++complete_chunks_[number] < under_way_[number].size()) return;
  complete_chunks_[number] = 0;
  const Clock::time_point from = std::exchange(first_arrival_[number], {});
  if (log_.size() < log_.capacity()) log_.push_back({number, from, Clock::now()});
}

PullReply& Server::send_back(std::uint32_t number, Sum& sum) {
  PullReply& answer = replies_.start(std::move(sum.total));
  // Starting after its own rank, so that servers do not all answer the same worker first.
  const std::size_t pushers = sum.pushers.size();
  for (std::size_t i = 1; i <= pushers; ++i) {
    const int worker = sum.pushers[(static_cast<std::size_t>(communicator_.rank()) + i) % pushers];
    if (worker == communicator_.rank()) continue;
    communicator_.send(worker, make_tag(TagSpace::kDistribute, number), sum.result, answer.sends);
  }
  return answer;
}

std::optional<Server::Late> Server::latest() const {
  std::optional<Late> late;
  for (std::uint32_t number = 0; number < under_way_.size(); ++number) {
    for (const auto& sum : under_way_[number]) {
      const bool waits = sum && sum->next < sum->pushers.size();
      if (waits && (!late || sum->since < late->since))
        late = Late{number, sum->pushers[sum->next], sum->since};
    }
  }
  return late;
}

Task push_pull(RoadMessage message, const ParameterServer& road, Server* here) {
  return road.local_sum == LocalSum::kFirst ? push_pull_host_sum(message, road, here)
                                            : push_pull_part(message, road, here);
}

Task push_pull_part(RoadMessage message, const ParameterServer& road, Server* here) {
  Communicator& communicator = message.communicator;
  const RoadSettings& settings = message.settings;
  const Layout layout{road, settings, message.number, message.data.bytes};
  Group pushes;
  Group answers;
  // Chunk by chunk over the servers, each worker starting with another one.
  for (std::size_t index = 0; index < layout.most_chunks(); ++index) {
    for (int i = 0; i < road.servers; ++i) {
      const int server = layout.ith_server(communicator.rank(), i);
      if (index >= layout.chunks_of(server)) continue;
      const Buffer bytes = message.part(layout.chunk_of(server, index));
      const int rank = server_rank(road, settings.workers, server);
      if (rank == communicator.rank()) {
        answers.hold();
        co_await here->offer(message.number, index, bytes, answers);
      } else {
        communicator.receive(rank, make_tag(TagSpace::kDistribute, message.number), bytes, answers);
        communicator.send(rank, make_tag(TagSpace::kReduce, message.number), bytes, pushes);
      }
    }
  }
  co_await pushes.empty();
  message.report(Stage::kReduce);
  co_await answers.empty();
  message.report(Stage::kDistribute);
}

Task push_stretch(RoadMessage stretch, const ParameterServer& road, Server* here, Group& pushes) {
  Communicator& communicator = stretch.communicator;
  const Layout layout{road, stretch.settings, stretch.number, stretch.data.bytes};
  for (std::size_t index = 0; index < layout.most_chunks(); ++index) {
    for (int i = 0; i < road.servers; ++i) {
      const int server = layout.ith_server(communicator.rank(), i);
      if (index >= layout.chunks_of(server)) continue;
      const Buffer bytes = stretch.part(layout.chunk_of(server, index));
      const int rank = server_rank(road, stretch.settings.workers, server);
      if (rank == communicator.rank()) {
        pushes.hold();
        co_await here->offer_to_keep(stretch.number, index, bytes, pushes);
      } else {
        communicator.send(rank, make_tag(TagSpace::kReduce, stretch.number), bytes, pushes);
      }
    }
  }
}

Task pull_stretch(RoadMessage stretch, const ParameterServer& road, Server* here, Group& answers) {
  Communicator& communicator = stretch.communicator;
  const Layout layout{road, stretch.settings, stretch.number, stretch.data.bytes};
  for (int i = 0; i < road.servers; ++i) {
    const int server = layout.ith_server(communicator.rank(), i);
    std::vector<Buffer> into;
    for (std::size_t index = 0; index < layout.chunks_of(server); ++index)
      into.push_back(stretch.part(layout.chunk_of(server, index)));
    if (into.empty()) continue;
    const int rank = server_rank(road, stretch.settings.workers, server);
    if (rank == communicator.rank()) {
      for (std::size_t held = 0; held < into.size(); ++held) answers.hold();
      co_await here->ask_here(stretch.number, std::move(into), answers);
      continue;
    }
    for (const Buffer& each : into)
      communicator.receive(rank, make_tag(TagSpace::kDistribute, stretch.number), each, answers);
    communicator.send(rank, make_tag(TagSpace::kReduce, stretch.number), {}, answers);
  }
}

Task say_goodbye(Communicator& communicator, const RoadSettings& settings, const ParameterServer& road) {
  Group sends;
  for (int server = 0; server < road.servers; ++server) {
    const int rank = server_rank(road, settings.workers, server);
    if (rank == communicator.rank()) continue;
    for (int i = 0; i < settings.window; ++i) {
      communicator.send(rank, make_tag(TagSpace::kReduce, kGoodbye), {}, sends);
    }
  }
  co_await sends.empty();
}

}  // namespace commtune
