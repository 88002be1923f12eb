#include "perfmodel/server_traffic.h"

namespace commtune {

void ServerTraffic::reset(const FlatRoad& road, std::size_t messages, std::uint64_t credit,
                          std::uint64_t most) {
  road_ = &road;
  shared_ = road.cost->shared_channel;
  used_ = shared_ ? 1 : 2;
  backlog_ = road.cost->backlog.count();
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
  pushing_ = travelling_ = 0;
  unsent_ = 0;
  credit_ = static_cast<double>(credit);
  limited_ = credit < most;
  under_way_ = under_way_until_ = 0;
  bytes_time_ = {};
}

void ServerTraffic::start(std::uint32_t urgency, const Parcel& parcel, ComputeClock& clock) {
  Message& message = messages_[urgency];
  price(message, parcel);
  message.bytes = message.unsent = parcel.bytes;
  message.rate = message.push > 0 ? message.bytes / message.push : 0;
  message.left = message.push;
  message.from = kNever;
  message.answering = false;
  if (!server_free_.empty())
    message.server = parcel.number % static_cast<std::uint32_t>(road_->cost->in_turn);
  ++pushing_;
  unsent_ += message.unsent;
  if (travelling_++ == 0) under_way_until_ = std::max(under_way_until_, now_);
  come(urgency);
  serve(0, clock);
}

/// What a message's push and answer cost.
void ServerTraffic::price(Message& message, const Parcel& parcel) {
  const auto kept = [&](const FlatCost& cost, double alone, double copying) {
    return std::min(cost.occupancy(parcel.bytes) + copying, alone);
  };
  const auto of_bytes = [&](const FlatCost& cost, double time) {
    return time - std::min(time, cost.occupancy.at(parcel.bytes).alpha);
  };
  const FlatCost &reduce = road_->reduce, &distribute = road_->distribute, &both = road_->both;
  if (!shared_) {
    const double half = parcel.copying / 2;
    const double there = reduce.alone(parcel.bytes) + half, back = distribute.alone(parcel.bytes) + half;
    message.push = kept(reduce, there, half);
    message.answer = kept(distribute, back, half);
    message.push_lag = there - message.push;
    message.answer_lag = back - message.answer;
    bytes_time_[0] += of_bytes(reduce, message.push);
    bytes_time_[1] += of_bytes(distribute, message.answer);
    return;
  }
  const double share = road_->reduce_share(parcel.bytes);
  const double alone = both.alone(parcel.bytes) + parcel.copying;
  const double occupancy = kept(both, alone, parcel.copying);
  message.push = share * occupancy;
  message.answer = occupancy - message.push;
  message.push_lag = message.answer_lag = (alone - occupancy) / 2;
  bytes_time_[0] += of_bytes(both, occupancy);
}

/// A push or an answer is there to be sent.
void ServerTraffic::come(std::uint32_t urgency) {
  Message& message = messages_[urgency];
  channels_[channel_of(message)].queue.insert(urgency);
}

double ServerTraffic::next() const {
  double next = std::min(channels_[0].ends, channels_[1].ends);
  if (!coming_.empty()) next = std::min(next, coming_.front().at);
  if (!limited_ || pushing_ == 0 || !channels_[0].full()) return next;
  if (const double over = over_credit(); over > kRounding) {
    const Message& message = messages_[channels_[0].served];
    if (!message.answering && message.unsent > over) next = std::min(next, now_ + over / message.rate);
  }
  return next;
}

void ServerTraffic::advance(double now, ComputeClock& clock) {
  if (now > now_) spend(now - now_);
  now_ = now;
  while (!coming_.empty() && coming_.front().at <= now) {
    std::pop_heap(coming_.begin(), coming_.end());
    come(coming_.back().urgency);
    coming_.pop_back();
  }
  for (std::size_t i = 0; i < used_; ++i) serve(i, clock);
}

/// Full sockets take as much as leaves them.
void ServerTraffic::spend(double time) {
  for (std::size_t i = 0; i < used_; ++i) {
    if (channels_[i].full()) take(channels_[i], messages_[channels_[i].served], time);
  }
}

/// Sockets take so much of a message.
void ServerTraffic::take(Channel& channel, Message& message, double time) {
  const double done = std::min(time, message.left);
  const double from = std::max(channel.free, now_);
  if (done > 0) message.from = std::min(message.from, from);
  channel.free = from + done;
  message.left -= done;
  if (message.answering || !limited_) return;
  const double sent = std::min(message.unsent, done * message.rate);
  message.unsent -= sent;
  unsent_ -= sent;
}

/// Has the channel's sockets take the most urgent, until they are full.
void ServerTraffic::serve(std::size_t number, ComputeClock& clock) {
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

/// When what leaves at `left` and was kept for so long would have left, had it come to its server no earlier
/// than that was free.
double ServerTraffic::after_turn(const Message& message, std::size_t channel, double left, double kept) {
  if (server_free_.empty()) return left;
  const double in = road_->reduce.alone.bytes_part(message.bytes),
               out = road_->distribute.alone.bytes_part(message.bytes);
  double& free = server_free_[std::size_t{2} * message.server + channel];
  const double from = std::max(left - kept, free);
  free = from + (shared_ ? std::max(in, out) : channel == 0 ? in : out);
  return from + kept;
}

/// The channel's sockets have all of what they were taking, which leaves last of what they hold.
void ServerTraffic::taken(Channel& channel) {
  const std::uint32_t urgency = channel.served;
  Message& message = messages_[urgency];
  const double left = std::max(channel.free, now_);
  channel.queue.erase(urgency);
  if (!message.answering) {
    unsent_ -= message.unsent;
    message.unsent = 0;
    if (--pushing_ == 0) unsent_ = 0;
    message.pushed = {std::min(message.from, left),
                      after_turn(message, 0, left, message.push) + message.push_lag};
    message.from = kNever;
    message.answering = true;
    message.left = message.answer;
    coming_.push_back({message.pushed.end, urgency});
    std::push_heap(coming_.begin(), coming_.end());
    return;
  }
  const double end = (shared_ ? left : after_turn(message, 1, left, message.answer)) + message.answer_lag;
  arrived_.push_back({urgency, message.pushed, {std::min(message.from, left), end}});
  --travelling_;
  if (end > under_way_until_) {
    under_way_ += end - under_way_until_;
    under_way_until_ = end;
  }
}

}  // namespace commtune
