#include "perfmodel/traffic.h"

namespace commtune {

namespace {

/// The part of a time that fewer bytes would have lowered.
double of_bytes(const FlatCost& cost, double bytes, double time) {
  return time - std::min(time, cost.occupancy.at(bytes).alpha);
}

/// Of `rounds` no more than `most`.
Rounds no_more_than(int most, const Rounds& rounds) {
  if (rounds.distribute == 0) return {std::min(rounds.reduce, most), 0};
  const int each = std::max(1, most / 2);
  return {std::min(rounds.reduce, each), std::min(rounds.distribute, each)};
}

}  // namespace

void Traffic::reset(const FlatRoad& road, std::size_t messages, std::uint64_t credit, std::uint64_t most) {
  road_ = &road;
  shared_ = road.cost->shared_channel;
  used_ = shared_ ? 1 : 2;
  turns_ = no_more_than(road.cost->most_turns, road.cost->rounds);
  // What may be ahead of one turn is what may be ahead of all rounds in it.
  backlog_ = road.cost->backlog.count() * road.cost->rounds.both() / turns_.both();
  now_ = 0;
  messages_.resize(messages);  // start() fills them in
  server_free_.assign(2 * static_cast<std::size_t>(road.cost->in_turn), 0.0);
  for (Channel& channel : channels_) {
    channel.queue.reset(messages);
    channel.free = 0;
    channel.ends = kNever;
  }
  coming_.clear();
  arrived_.clear();
  sending_ = travelling_ = 0;
  unsent_ = 0;
  credit_ = static_cast<double>(credit);
  limited_ = credit < most;
  under_way_ = under_way_until_ = 0;
  bytes_time_ = {};
}

void Traffic::start(std::uint32_t urgency, const Parcel& parcel, ComputeClock& clock) {
  const RoadCost& cost = *road_->cost;
  Message& message = ready(urgency, parcel, turns_);
  if (shared_) {
    price(message, road_->both, cost.rounds.last_share(), parcel.copying);
  } else {
    price_apart(message, parcel.copying);
  }
  if (cost.through_servers) {
    message.counted = message.first;
    message.rate = message.kept[0] > 0 ? message.bytes / message.kept[0] : 0;
    if (!server_free_.empty()) message.server = parcel.number % static_cast<std::uint32_t>(cost.in_turn);
  }
  begin(urgency, clock);
}

void Traffic::start(std::uint32_t urgency, const Parcel& parcel, Stage stage, ComputeClock& clock) {
  const bool reduces = stage == Stage::kReduce;
  Message& message = ready(urgency, parcel, {reduces ? turns_.reduce : turns_.distribute, 0});
  price(message, reduces ? road_->reduce : road_->distribute, road_->cost->rounds.last_share(stage),
        parcel.copying / 2);
  message.told = reduces;
  begin(urgency, clock);
}

/// Another message under this number, of which only the costs are missing.
Traffic::Message& Traffic::ready(std::uint32_t urgency, const Parcel& parcel, const Rounds& turns) {
  Message& message = messages_[urgency];
  message.bytes = parcel.bytes;
  message.from = kNever;
  message.passed.fill({kNever, 0});
  message.turn = 0;
  message.first = turns.reduce;
  message.turns = message.counted = turns.both();
  message.told = false;
  return message;
}

/// What turns cost that share one channel; the last one has its share of the latency.
void Traffic::price(Message& message, const FlatCost& cost, double last_share, double copying) {
  const double alone = cost.alone(message.bytes) + copying;
  const double occupancy = std::min(cost.occupancy(message.bytes) + copying, alone);
  const int second = message.turns - message.first;
  const double share = second > 0 ? road_->reduce_share(message.bytes) : 1;
  message.kept[0] = share * occupancy / message.first;
  message.kept[1] = second > 0 ? (1 - share) * occupancy / second : 0;
  message.last_lag = (alone - occupancy) * last_share;
  message.lag.fill(message.turns > 1 ? (alone - occupancy - message.last_lag) / (message.turns - 1) : 0);
  message.rate = occupancy > 0 ? message.bytes / occupancy : 0;
  bytes_time_[0] += of_bytes(cost, message.bytes, occupancy);
  if (!road_->cost->opaque) return;
  message.rate = 0;
  message.told = true;
  ++message.counted;
}

/// What two stages of a turn each cost on a channel each.
void Traffic::price_apart(Message& message, double copying) {
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const FlatCost& cost = stage == 0 ? road_->reduce : road_->distribute;
    const double alone = cost.alone(message.bytes) + copying / 2;
    message.kept[stage] = std::min(cost.occupancy(message.bytes) + copying / 2, alone);
    message.lag[stage] = alone - message.kept[stage];
    bytes_time_[stage] += of_bytes(cost, message.bytes, message.kept[stage]);
  }
  message.last_lag = message.lag[1];
}

void Traffic::begin(std::uint32_t urgency, ComputeClock& clock) {
  Message& message = messages_[urgency];
  message.unsent = message.bytes;
  ++sending_;
  unsent_ += message.unsent;
  if (travelling_++ == 0) under_way_until_ = std::max(under_way_until_, now_);
  const bool sends_alone = limited_ && credit_ == 0 && message.counted == message.turns;
  if (sends_alone && message.turns > 1) return pass_alone(urgency, clock);
  next_turn(urgency);
  serve(0, clock);
}

/// Nobody else may send before this message has sent everything: it has all its turns but the last at once.
void Traffic::pass_alone(std::uint32_t urgency, ComputeClock& clock) {
  Message& message = messages_[urgency];
  const double from = std::max(channels_[0].free, now_);
  double at = from, kept = 0;
  for (; message.turn + 1 < message.turns; ++message.turn) {
    const std::size_t stage = message.stage();
    Passage& passed = message.passed[stage];
    passed.from = std::min(passed.from, at);
    kept += message.kept[stage];
    at += message.kept[stage] + message.lag[stage];
    passed.end = at;
  }
  clock.occupy(0, from, from + kept);
  coming_.push_back({at, urgency});
  std::push_heap(coming_.begin(), coming_.end());
}

/// A message has something to send.
void Traffic::next_turn(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  message.left = message.kept[message.stage()];
  channels_[channel_of(message)].queue.insert(urgency);
}

double Traffic::next() const {
  double next = std::min(channels_[0].ends, channels_[1].ends);
  if (!coming_.empty()) next = std::min(next, coming_.front().at);
  if (!limited_ || sending_ == 0 || !channels_[0].full()) return next;
  if (const double over = over_credit(); over > kRounding) {
    const Message& message = messages_[channels_[0].served];
    if (message.turn < message.counted && message.unsent > over) {
      next = std::min(next, now_ + over / message.rate);
    }
  }
  return next;
}

void Traffic::advance(double now, ComputeClock& clock) {
  if (now > now_) spend(now - now_);
  now_ = now;
  while (!coming_.empty() && coming_.front().at <= now) {
    std::pop_heap(coming_.begin(), coming_.end());
    const std::uint32_t urgency = coming_.back().urgency;
    coming_.pop_back();
    Message& message = messages_[urgency];
    if (message.turn < message.turns) {
      next_turn(urgency);
    } else {
      end_turn(message);
      arrive(urgency);
    }
  }
  for (std::size_t i = 0; i < used_; ++i) serve(i, clock);
}

/// Full sockets take as much as leaves them.
void Traffic::spend(double time) {
  for (std::size_t i = 0; i < used_; ++i) {
    if (channels_[i].full()) take(channels_[i], messages_[channels_[i].served], time);
  }
}

/// Sockets take so much of a message.
void Traffic::take(Channel& channel, Message& message, double time) {
  const double done = std::min(time, message.left);
  const double from = std::max(channel.free, now_);
  if (done > 0) message.from = std::min(message.from, from);
  channel.free = from + done;
  message.left -= done;
  if (message.turn >= message.counted || !limited_) return;
  const double sent = std::min(message.unsent, done * message.rate);
  message.unsent -= sent;
  unsent_ -= sent;
}

/// Has the channel's sockets take the most urgent, until they are full.
void Traffic::serve(std::size_t number, ComputeClock& clock) {
  Channel& channel = channels_[number];
  const bool ended = channel.full() && channel.ends <= now_;
  if (ended) taken(channel);
  channel.ends = kNever;
  while (!channel.queue.empty()) {
    channel.served = channel.queue.smallest();
    Message& message = messages_[channel.served];
    const double room = std::max(0.0, backlog_ - std::max(0.0, channel.free - now_));
    if (message.left > room) {
      take(channel, message, room);
      channel.ends = now_ + message.left;
      break;
    }
    take(channel, message, message.left);
    taken(channel);
  }
  const double busy_until = channel.full() ? channel.ends + backlog_ : channel.free;
  if (busy_until > now_) clock.occupy(number, now_, busy_until);
}

/// When the turn that leaves at `left` would have left, had it come to its server no earlier than that was
/// free.
double Traffic::after_turn(const Message& message, double left) {
  const std::size_t stage = message.stage();
  if (server_free_.empty() || (shared_ && stage > 0)) return left;
  const double in = road_->reduce.alone.bytes_part(message.bytes),
               out = road_->distribute.alone.bytes_part(message.bytes);
  double& free = server_free_[std::size_t{2} * message.server + stage];
  const double from = std::max(left - message.kept[stage], free);
  free = from + (shared_ ? std::max(in, out) : stage == 0 ? in : out);
  return from + message.kept[stage];
}

/// The channel's sockets have all of the turn that they were taking, which leaves last of what they hold.
void Traffic::taken(Channel& channel) {
  const std::uint32_t urgency = channel.served;
  Message& message = messages_[urgency];
  const double left = std::max(channel.free, now_);
  channel.queue.erase(urgency);
  const std::size_t stage = message.stage();
  Passage& passed = message.passed[stage];
  passed.from = std::min({passed.from, message.from, left});
  const bool last = message.turn + 1 == message.turns;
  passed.end = after_turn(message, left) + (last ? message.last_lag : message.lag[stage]);
  message.from = kNever;
  end_turn(message);
  if (message.turn == message.turns && !message.told) return arrive(urgency);
  coming_.push_back({passed.end, urgency});
  std::push_heap(coming_.begin(), coming_.end());
}

void Traffic::end_turn(Message& message) {
  if (++message.turn != message.counted) return;
  unsent_ -= message.unsent;
  message.unsent = 0;
  if (--sending_ == 0) unsent_ = 0;
}

void Traffic::arrive(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  const double reduced = message.passed[0].end;
  if (message.first == message.turns) message.passed[1] = {reduced, reduced};
  arrived_.push_back({urgency, message.passed[0], message.passed[1]});
  --travelling_;
  if (const double end = message.passed[1].end; end > under_way_until_) {
    under_way_ += end - under_way_until_;
    under_way_until_ = end;
  }
}

}  // namespace commtune
