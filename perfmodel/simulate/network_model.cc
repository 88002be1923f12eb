#include "perfmodel/simulate/network_model.h"

namespace commtune {

namespace {

/// Of what is urgent waits for at a connection, so much is in sockets, and counts as sent; the rest is what
/// is left of the chunk that is handed to them.
constexpr double kTakenOfHeld = 0.5;

/// The part of a time that is due to bytes: all but the start-up.
double of_bytes(const FlatCost& cost, double bytes, double time) {
  return time - std::min(time, cost.occupancy.at(bytes).alpha);
}

/// run.operator()<value>().
template <typename Run>
void either(bool value, const Run& run) {
  value ? run.template operator()<true>() : run.template operator()<false>();
}

/// The same stages in at most `most` rounds.
Rounds no_more_than(int most, const Rounds& rounds) {
  if (rounds.distribute == 0) return {std::min(rounds.reduce, most), 0};
  const int each = std::max(1, most / 2);
  return {std::min(rounds.reduce, each), std::min(rounds.distribute, each)};
}

}  // namespace

void NetworkModel::reset(const FlatRoad& road, std::size_t messages, bool coupled, const Credit& credit,
                         bool slows) {
  road_ = &road;
  shared_ = road.cost->shared_channel;
  rounds_ = no_more_than(road.most_rounds, road.cost->rounds);
  // One simulated round stands for several real ones, and bytes may be ahead of each of those.
  head_of_line_ = road.cost->head_of_line.count() * road.cost->rounds.both() / rounds_.both();
  now_ = 0;
  messages_.resize(messages);  // start() fills them in
  const auto servers = static_cast<std::uint32_t>(road.cost->in_turn);
  server_free_.assign(shared_ ? 0 : std::size_t{2} * servers, 0.0);
  connected_ = shared_ && coupled && servers > 0 && road.cost->server_hosts.connections_bind;
  for (Channel& channel : channels_) {
    channel.queue.reset(messages);
    channel.free = channel.since = 0;
    channel.ends = kNever;
    channel.called = false;
  }
  coming_.clear();
  for (Priced& priced : priced_) priced.message.bytes = -1;
  arrived_.clear();
  sending_ = unfinished_ = travelling_ = 0;
  unsent_ = to_send_ = 0;
  credit_ = static_cast<double>(credit.bytes);
  all_bytes_ = static_cast<double>(credit.most);
  limited_ = credit.varies || credit.bytes < credit.most;
  varies_ = credit.varies;
  under_way_ = under_way_until_ = 0;
  bytes_time_ = {};
  if (connected_) {
    reset_connections(messages);
    advance_ = &NetworkModel::advance_connections;
    first_round_ = &NetworkModel::pass_connections;
    return;
  }
  of_kind(slows, [&]<Kind kKind>() {
    advance_ = &NetworkModel::advance_to<kKind>;
    first_round_ = &NetworkModel::first_round<kKind>;
  });
}

/// The ranks of a host that push parts of its sum share its card, so none is given much ahead of that.
void NetworkModel::reset_connections(std::size_t messages) {
  const RoadCost& cost = *road_->cost;
  const auto servers = static_cast<std::uint32_t>(cost.in_turn);
  const ServerHosts& where = cost.server_hosts;
  const double taken = cost.rounds.first_as_last ? 0 : kTakenOfHeld * head_of_line_;
  const std::uint32_t hosts = where.connected(servers);
  const bool all = road_->to_all_hosts && hosts - 1 <= kFewPeers;
  connections_.reset({hosts, where.with_servers(servers), all ? hosts - 1 : kNeighbours}, messages,
                     head_of_line_, limited_ ? taken : Connections::kNever);
}

void NetworkModel::start(std::uint32_t urgency, const InFlightMessage& in_flight, ComputeClock& clock) {
  const RoadCost& cost = *road_->cost;
  Priced& priced = priced_[0];
  if (!priced.is_of(in_flight)) {
    prepare(priced, in_flight, rounds_);
    Message& message = priced.message;
    if (shared_) {
      price(priced, road_->both, cost.rounds.last_share(), in_flight.copying);
    } else {
      price_apart(priced);
    }
    if (!server_free_.empty()) price_server(message);
    if (cost.through_servers) {
      message.counted = message.first;
      message.to_send = message.first * message.kept[0];
      message.rate = pushed_per_second(message);
    }
    if (connected_) price_transfers(priced);
  }
  Message& message = put(urgency, priced);
  message.server = in_flight.server;
  begin(urgency, clock);
}

void NetworkModel::start(std::uint32_t urgency, const InFlightMessage& in_flight, Stage stage,
                         ComputeClock& clock) {
  const bool reduces = stage == Stage::kReduce;
  Priced& priced = priced_[reduces ? 0 : 1];
  if (!priced.is_of(in_flight)) {
    if (shared_) {
      prepare(priced, in_flight, {reduces ? rounds_.reduce : rounds_.distribute, 0});
      price(priced, reduces ? road_->reduce : road_->distribute, road_->cost->rounds.last_share(stage),
            in_flight.copying / 2);
    } else {
      prepare(priced, in_flight, {reduces ? 1 : 0, reduces ? 0 : 1});
      price_apart(priced);
      priced.bytes_time[reduces ? 1 : 0] = 0;
    }
    Message& message = priced.message;
    if (!server_free_.empty()) price_server(message);
    if (road_->cost->through_servers) {
      message.counted = reduces ? message.rounds : 0;
      message.rate = pushed_per_second(message);
    }
    message.told = reduces;
  }
  put(urgency, priced);
  begin(urgency, clock);
}

/// Bytes of a push that count as sent per second of channel time: of servers in turn none before it has
/// arrived.
double NetworkModel::pushed_per_second(const Message& message) const {
  return server_free_.empty() && message.kept[0] > 0 ? message.bytes / message.kept[0] : 0;
}

/// Sets everything but the costs of the channel.
void NetworkModel::prepare(Priced& priced, const InFlightMessage& in_flight, const Rounds& rounds) const {
  priced = {};
  priced.copying = in_flight.copying;
  Message& message = priced.message;
  message.bytes = message.unsent = in_flight.bytes;
  message.passed.fill({kNever, 0});
  message.first = rounds.reduce;
  message.rounds = message.counted = rounds.both();
}

/// Sets the costs where all rounds share one channel. The last round has `last_share` of the latency, and
/// with a local sum the first one too.
void NetworkModel::price(Priced& priced, const FlatCost& cost, double last_share, double copying) const {
  Message& message = priced.message;
  const double alone = cost.alone(message.bytes) + copying;
  const double occupancy = std::min(cost.occupancy(message.bytes) + copying, alone);
  const int second = message.rounds - message.first;
  const double share = second > 0 ? road_->reduce_share(message.bytes) : 1;
  message.kept[0] = share * occupancy / message.first;
  message.kept[1] = second > 0 ? (1 - share) * occupancy / second : 0;
  const double waits = alone - occupancy, last = waits * last_share;
  message.to_send = occupancy;
  message.waits = waits;
  const double on_the_way = road_->cost->on_the_way.count() * message.rounds / rounds_.both();
  message.works = std::max(0.0, waits - on_the_way);
  const bool first_as_last = road_->cost->rounds.first_as_last && message.first > 1 && second > 0;
  const int alike = first_as_last ? 2 : 1;  // rounds that take what the last one takes
  const double each = message.rounds > alike ? (waits - alike * last) / (message.rounds - alike) : 0;
  message.lag = {first_as_last ? last : each, each};
  message.end_lag = {second > 0 ? each : last, last};
  message.rate = occupancy > 0 ? message.bytes / occupancy : 0;
  priced.bytes_time[0] = of_bytes(cost, message.bytes, occupancy);
  if (!road_->cost->opaque) return;
  message.rate = 0;
  message.told = true;
  ++message.counted;
}

/// Sets the costs where each stage has a channel of its own and one round.
void NetworkModel::price_apart(Priced& priced) const {
  Message& message = priced.message;
  const double copying = priced.copying / 2;
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const FlatCost& cost = stage == 0 ? road_->reduce : road_->distribute;
    const double alone = cost.alone(message.bytes) + copying;
    message.kept[stage] = std::min(cost.occupancy(message.bytes) + copying, alone);
    message.end_lag[stage] = alone - message.kept[stage];
    priced.bytes_time[stage] = of_bytes(cost, message.bytes, message.kept[stage]);
  }
}

/// Sets for how long a dedicated server handles the message.
void NetworkModel::price_server(Message& message) const {
  message.handling = {road_->reduce.alone.bytes_part(message.bytes),
                      road_->distribute.alone.bytes_part(message.bytes)};
}

/// Sets for how long the message keeps its connections. On average over all connections that is as long as it
/// keeps the channel; what it takes beyond that alone is latency, of which longer messages than were measured
/// have no more. Of that its host's ranks work for half on their sum before they push it, where they have
/// one.
void NetworkModel::price_transfers(Priced& priced) const {
  const RoadCost& cost = *road_->cost;
  const auto seconds = [&](double bytes) {
    return connections_.time_by_occupancy() *
           (std::min(road_->both.occupancy(bytes), road_->both.alone(bytes)) + priced.copying);
  };
  const auto chunk_of = [&](double bytes) {
    return seconds(bytes) / cost.traits.chunks(bytes / cost.segments);
  };
  const double bytes = priced.message.bytes;
  const double measured = cost.measured_largest > Bytes{0}
                              ? std::min(bytes, static_cast<double>(cost.measured_largest.count))
                              : bytes;
  const double beyond = std::max(0.0, road_->both.alone(measured) - seconds(measured) - chunk_of(measured));
  priced.message.counted = 1;  // the push: sent at once or not at all
  priced.message.works = 0;    // but for what connections make it wait
  Connections::TransferCost& transfers = priced.transfers;
  transfers.time = seconds(bytes);
  transfers.chunk = chunk_of(bytes);
  if (cost.rounds.first_as_last) transfers.before = std::max(0.0, beyond - cost.on_the_way.count()) / 2;
  transfers.lag = (beyond - transfers.before) / 2;
}

/// Adds a message at this urgency.
NetworkModel::Message& NetworkModel::put(std::uint32_t urgency, const Priced& priced) {
  bytes_time_[0] += priced.bytes_time[0];
  bytes_time_[1] += priced.bytes_time[1];
  return messages_[urgency] = priced.message;
}

template <typename Run>
void NetworkModel::of_kind(bool slows, const Run& run) {
  if (!shared_) return run.template operator()<Kind{}>();
  either(limited_, [&]<bool kLimited>() {
    either(head_of_line_ > 0, [&]<bool kAhead>() {
      either(slows, [&]<bool kSlows>() { run.template operator()<Kind{kLimited, kAhead, false, kSlows}>(); });
    });
  });
}

/// A message that a credit lets go beside others comes behind them not only on the channel, but where hosts
/// work on each as well: for as long as they take (mean value analysis of closed networks: Reiser, Lavenberg,
/// Journal of the ACM 27, 1980), of which they have sent half on average, and for no longer than as many of
/// its own kind would pass there. On the way between hosts none waits for another.
inline void NetworkModel::wait_for_others(Message& message) const {
  constexpr double kOfHalf = 2;
  if (!limited_ || unfinished_ == 0 || !(message.works > 0) || credit_ >= all_bytes_) return;
  const double behind = std::min(kOfHalf * to_send_, static_cast<double>(unfinished_) * message.works);
  const double longer = 1 + behind / message.waits;
  for (std::array<double, 2>* const lags : {&message.lag, &message.end_lag}) {
    for (double& lag : *lags) lag *= longer;
  }
}

void NetworkModel::begin(std::uint32_t urgency, ComputeClock& clock) {
  Message& message = messages_[urgency];
  wait_for_others(message);
  if (message.counted > 0) {
    ++sending_;
    ++unfinished_;
    unsent_ += message.unsent;
    to_send_ += message.to_send;
  }
  if (travelling_++ == 0) under_way_until_ = std::max(under_way_until_, now_);
  const bool sends_alone = limited_ && !varies_ && credit_ == 0 && message.counted == message.rounds;
  if (sends_alone && message.rounds > 1) return pass_alone(urgency, clock);
  (this->*first_round_)(urgency, clock);
}

template <NetworkModel::Kind kKind>
void NetworkModel::first_round(std::uint32_t urgency, ComputeClock& clock) {
  next_round<kKind>(urgency);
  if (channels_[0].called) serve<kKind>(0, clock);
  if (kKind.apart && channels_[1].called) serve<kKind>(1, clock);  // a distribute that starts as a step
}

/// With credit 0 for all no other message may send before this one has sent everything, so all its rounds but
/// the last are simulated at once.
void NetworkModel::pass_alone(std::uint32_t urgency, ComputeClock& clock) {
  Message& message = messages_[urgency];
  const double from = std::max(channels_[0].free, now_);
  double at = from, kept = 0;
  for (; message.round + 1 < message.rounds; ++message.round) {
    const std::size_t stage = message.stage();
    StageInterval& passed = message.passed[stage];
    passed.from = std::min(passed.from, at);
    kept += message.kept[stage];
    at += message.kept[stage] + (message.ends_stage() ? message.end_lag : message.lag)[stage];
    passed.end = at;
  }
  clock.occupy(0, from, from + kept);
  coming_.push({at, urgency});
}

/// A message has a round to send. The channel has to look at that unless its sockets are full and busy with a
/// more urgent message.
template <NetworkModel::Kind kKind>
inline void NetworkModel::next_round(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  message.left = message.kept[message.stage()];
  Channel& channel = channels_[channel_of<kKind>(message)];
  channel.queue.insert(urgency);
  channel.called = channel.called || !channel.full() || urgency < channel.served;
}

/// Moment at which the sockets will have accepted enough bytes for the credit to allow another message;
/// infinity if the current round ends before that.
[[gnu::always_inline]] inline double NetworkModel::credit_moment() const {
  const Channel& channel = channels_[0];
  const double over = over_credit();
  if (!channel.full() || over <= kRounding) return kNever;
  const Message& message = messages_[channel.served];
  if (message.round >= message.counted || message.unsent <= over) return kNever;
  return std::max(now_, channel.since + over / message.rate);
}

void NetworkModel::ComingQueue::make_room() {
  const auto begin = list_.begin();
  std::move(begin + static_cast<std::ptrdiff_t>(first_), begin + static_cast<std::ptrdiff_t>(end_), begin);
  end_ -= first_;
  first_ = 0;
  if (2 * end_ >= list_.size()) list_.resize(2 * list_.size() + 16);
}

/// True if serve() has to be called now.
bool NetworkModel::due(const Channel& channel) const { return channel.called || channel.ends <= now_; }

void NetworkModel::pass_connections(std::uint32_t urgency, ComputeClock& /*clock*/) {
  const RoadCost& cost = *road_->cost;
  const auto servers = static_cast<std::uint32_t>(cost.in_turn);
  Connections::TransferCost transfers = priced_[0].transfers;
  // The same ranks hand out the sum before, whose push the credit waited for.
  if (limited_ && travelling_ > 1) transfers.before *= 2;
  connections_.start(urgency, cost.server_hosts.of(messages_[urgency].server, servers), transfers, now_);
}

double NetworkModel::advance_connections(double until, bool stops_at_credit, ComputeClock& clock) {
  const bool watches_credit = stops_at_credit && limited_;
  do {
    const double next = connections_.soonest();
    if (clock.disturbed() && next < kNever) clock.occupy(0, now_, next);
    now_ = std::min(until, next);
    if (next > until) break;
    note(connections_.handle());
  } while (arrived_.empty() && !(watches_credit && credit_allows()));
  return now_;
}

/// Accounts for what has been sent of a message, and for its arrival.
void NetworkModel::note(const Connections::Event& event) {
  Message& message = messages_[event.message];
  if (event.sent) end_round(message);
  if (!event.arrived) return;
  message.passed = connections_.stages(event.message);
  arrive(event.message);
}

template <NetworkModel::Kind kKind>
double NetworkModel::advance_to(double until, bool stops_at_credit, ComputeClock& clock) {
  const bool watches_credit = kKind.limited && stops_at_credit && limited_;
  for (;;) {
    double next = std::min(until, channels_[0].ends);
    if (kKind.apart) next = std::min(next, channels_[1].ends);
    if (!coming_.empty()) next = std::min(next, coming_.soonest().at);
    const double credit = watches_credit ? credit_moment() : kNever;
    now_ = std::min(next, credit);
    while (!coming_.empty() && coming_.soonest().at <= now_) take_soonest<kKind>();
    for (std::size_t number = 0; number < (kKind.apart ? 2 : 1); ++number) {
      if (due(channels_[number])) serve<kKind>(number, clock);
    }
    if (watches_credit && credit <= now_) account<kKind>(channels_[0]);
    if (now_ >= until || !arrived_.empty() || (watches_credit && credit_allows())) break;
  }
  if (kKind.limited && limited_) account<kKind>(channels_[0]);
  return now_;
}

/// Handles the earliest event: a message's next round is ready, or its last one has ended.
template <NetworkModel::Kind kKind>
inline void NetworkModel::take_soonest() {
  const std::uint32_t urgency = coming_.soonest().urgency;
  coming_.pop();
  Message& message = messages_[urgency];
  if (kKind.apart && message.parts_left > 0) {
    if (--message.parts_left > 0) return wait_for_part(urgency);
    end_round(message);
    if (message.round == message.rounds) return arrive(urgency);
    if (const double end = message.passed[0].end; end > now_) return coming_.push({end, urgency});
  }
  if (message.round < message.rounds) return next_round<kKind>(urgency);
  end_round(message);
  arrive(urgency);
}

/// Accounts for the bytes that full sockets have accepted up to now: as many as have left them.
template <NetworkModel::Kind kKind>
inline void NetworkModel::account(Channel& channel) {
  if (!channel.full() || now_ <= channel.since) return;
  take<kKind>(channel, messages_[channel.served], channel.since, now_ - channel.since);
  channel.since = now_;
}

/// The sockets accept `time` seconds' worth of a message's bytes from the moment `at` on.
template <NetworkModel::Kind kKind>
inline void NetworkModel::take(Channel& channel, Message& message, double at, double time) {
  const double done = std::min(time, message.left);
  const double from = std::max(channel.free, at);
  if (done > 0) message.from = std::min(message.from, from);
  channel.free = from + done;
  message.left -= done;
  if (!kKind.limited || !limited_ || message.round >= message.counted) return;
  const double sent = std::min(message.unsent, done * message.rate);
  if (message.unsent > kRounding && message.unsent - sent <= kRounding) --unfinished_;
  message.unsent -= sent;
  unsent_ -= sent;
  message.to_send -= done;
  to_send_ -= done;
}

/// Seconds' worth of bytes that the sockets may still accept ahead of the channel.
template <NetworkModel::Kind kKind>
inline double NetworkModel::room_in(const Channel& channel) const {
  if (!kKind.ahead || !(head_of_line_ > 0)) return 0;
  return std::max(0.0, head_of_line_ - std::max(0.0, channel.free - now_));
}

/// Tells the clock for how long the channel is busy if nothing more is sent. Inlined, for it comes twice a
/// round.
[[gnu::always_inline]] inline void NetworkModel::occupy(std::size_t number, ComputeClock& clock) const {
  const Channel& channel = channels_[number];
  const double busy_until = channel.full() ? channel.ends + head_of_line_ : channel.free;
  if (busy_until > now_) clock.occupy(number, now_, busy_until);
}

/// Lets the channel's sockets accept the most urgent bytes until they are full.
template <NetworkModel::Kind kKind>
void NetworkModel::serve(std::size_t number, ComputeClock& clock) {
  Channel& channel = channels_[kKind.apart ? number : 0];
  account<kKind>(channel);
  if (channel.ends <= now_) taken<kKind>(channel);
  channel.called = false;
  channel.ends = kNever;
  while ((channel.served = channel.queue.smallest()) != channel.queue.none()) {
    Message& message = messages_[channel.served];
    const double room = room_in<kKind>(channel);
    if (message.left > room) {
      if (room > 0) take<kKind>(channel, message, now_, room);
      channel.since = now_;
      channel.ends = now_ + message.left;
      break;
    }
    take<kKind>(channel, message, now_, message.left);
    taken<kKind>(channel);
  }
  if (kKind.slows && clock.disturbed()) occupy(number, clock);
}

/// Moment at which a stage leaves that would leave at `left` if its server were free: the server may delay
/// it.
double NetworkModel::after_server(const Message& message, double left) {
  const std::size_t stage = message.stage();
  double& free = server_free_[std::size_t{2} * message.server + stage];
  const double from = std::max(left - message.kept[stage], free);
  free = from + message.handling[stage];
  return from + message.kept[stage];
}

/// The channel's sockets have accepted all of the current round. Its last byte leaves after all others that
/// they hold.
template <NetworkModel::Kind kKind>
inline void NetworkModel::taken(Channel& channel) {
  const std::uint32_t urgency = channel.served;
  Message& message = messages_[urgency];
  const double left = std::max(channel.free, now_);
  channel.queue.erase(urgency);
  message.from = std::min(message.from, left);
  const std::size_t stage = message.stage();
  const bool visits = kKind.apart && !server_free_.empty();
  const double sent = visits ? after_server(message, left) : left;
  if (!message.ends_stage()) {  // most rounds of a collective: only its next round follows
    ++message.round;
    return coming_.push({sent + message.lag[stage], urgency});
  }
  StageInterval& passed = message.passed[stage];
  passed.from = std::min(passed.from, message.from);
  passed.end = sent + message.end_lag[stage];
  message.from = kNever;
  if (visits && kKind.limited && limited_ && message.round + 1 == message.counted) {
    message.parts_left = credit_ > 0 ? kPushParts : 1;  // without a credit all has to be taken in
    message.taken_in = std::max(now_, passed.end - head_of_line_);
    message.part_time = (message.taken_in - now_) / kPushParts;
    return wait_for_part(urgency);
  }
  end_round(message);
  if (message.round == message.rounds && !message.told) return arrive(urgency);
  coming_.push({passed.end, urgency});
}

inline void NetworkModel::end_round(Message& message) {
  if (++message.round != message.counted) return;
  if (message.unsent > kRounding) --unfinished_;
  unsent_ -= message.unsent;
  message.unsent = 0;
  to_send_ -= message.to_send;
  if (--sending_ == 0) unsent_ = to_send_ = 0;
}

/// Accounts for what a server in turn has taken of a push, and waits for the next part.
void NetworkModel::wait_for_part(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  const double unsent = std::min(message.unsent, message.bytes * message.parts_left / kPushParts);
  unsent_ -= message.unsent - unsent;
  message.unsent = unsent;
  coming_.push({message.taken_in - (message.parts_left - 1) * message.part_time, urgency});
}

void NetworkModel::arrive(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  const double reduced = message.passed[0].end;
  if (message.first == message.rounds) message.passed[1] = {reduced, reduced};
  if (message.first == 0) message.passed[0] = message.passed[1];
  arrived_.push_back({urgency, message.passed[0], message.passed[1]});
  --travelling_;
  if (const double end = message.passed[1].end; end > under_way_until_) {
    under_way_ += end - under_way_until_;
    under_way_until_ = end;
  }
}

}  // namespace commtune
