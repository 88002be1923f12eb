#include "executor/roads/parameter_server/held_sums.h"

#include <utility>

namespace commtune {

HeldSums::HeldSums(Communicator& communicator, int workers, const std::vector<std::size_t>& chunks)
    : communicator_(communicator), numbers_(chunks.size()) {
  for (std::size_t number = 0; number < chunks.size(); ++number) {
    numbers_[number].chunks.resize(chunks[number]);
    numbers_[number].askers.resize(static_cast<std::size_t>(workers));
  }
}

Task HeldSums::complete(std::uint32_t number, std::size_t chunk, PullReply& reply, Buffer sum) {
  Number& of = numbers_[number];
  const auto workers = static_cast<int>(of.askers.size());
  reply.sends.hold();
  of.chunks[chunk] = {&reply, sum, workers, of.chunks[chunk].complete + 1};
  // Starting after its own rank, so that servers do not all answer the same worker first.
  for (int i = 1; i <= workers; ++i) co_await answer((communicator_.rank() + i) % workers, number);
}

Task HeldSums::ask(int worker, std::uint32_t number) {
  numbers_[number].askers[static_cast<std::size_t>(worker)].asked = true;
  return answer(worker, number);
}

Task HeldSums::ask_here(std::uint32_t number, std::vector<Buffer> into, Group& answered) {
  numbers_[number].into = std::move(into);
  numbers_[number].answered = &answered;
  return ask(communicator_.rank(), number);
}

bool HeldSums::may_answer(const Number& of, const Asker& asker) {
  const Held& next = of.chunks[asker.next];
  return asker.asked && next.reply != nullptr && next.complete == asker.answered + 1;
}

Task HeldSums::answer(int worker, std::uint32_t number) {
  Number& of = numbers_[number];
  Asker& asker = of.askers[static_cast<std::size_t>(worker)];
  while (may_answer(of, asker)) {
    const std::size_t chunk = asker.next++;
    // Whoever has the last chunk may push this number's first one again: make room before it is sent.
    if (asker.next == of.chunks.size()) asker = {false, 0, asker.answered + 1};
    Held& held = of.chunks[chunk];
    PullReply& reply = *held.reply;
    const Buffer sum = held.sum;
    reply.sends.hold();
    if (--held.left == 0) {
      held.reply = nullptr;
      reply.sends.release();
    }
    if (worker == communicator_.rank()) {
      const Buffer into = of.into[chunk];
      Group& answered = *of.answered;
      co_await communicator_.operations().copy(into, sum);
      answered.release();
    } else {
      communicator_.send(worker, make_tag(TagSpace::kDistribute, number), sum, reply.sends);
    }
    reply.sends.release();
  }
}

}  // namespace commtune
