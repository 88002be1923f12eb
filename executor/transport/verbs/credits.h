#pragma once
// How many messages may be sent to a peer before one of them finds no receive posted. A receive queue that
// runs dry stops a connection for milliseconds, or ends it.
//
// Each side posts as many receives as the other starts with credits. What takes a receive at the peer takes a
// credit here; when the peer has posted it again, it owes the credit, and gives it back with whatever it
// sends next, or with a message of its own as soon as it owes half of them. For that message a credit is set
// aside, so that two sides which have spent all others can still give back: when a side is down to that one,
// the other has, or is about to have, at least half of all to give back.

#include <cassert>
#include <cstdint>
#include <utility>

namespace commtune::verbs {

class Credits {
 public:
  /// receives  posted on either side, at least 4
  explicit Credits(std::uint32_t receives) : receives_(receives), left_(receives) { assert(receives >= 4); }

  /// Something that takes a receive may be sent.
  bool may_send() const { return left_ > kSetAside; }
  /// The same, for a message that does nothing but give back.
  bool may_give_back() const { return left_ > 0; }
  void spend() {
    assert(left_ > 0);
    --left_;
  }

  /// A receive was taken by the peer and is posted again.
  void owe() { ++owed_; }
  /// So many are owed that a message of its own should give them back.
  bool should_give_back() const { return owed_ >= receives_ / 2; }
  /// What the next message gives back: all that is owed.
  std::uint32_t take_owed() { return std::exchange(owed_, 0U); }

  /// The peer gave back so many.
  /// returns  false where it has given back more than it ever got
  [[nodiscard]] bool add(std::uint32_t given) {
    if (given > receives_ - left_) return false;
    left_ += given;
    return true;
  }

  std::uint32_t left() const { return left_; }

 private:
  static constexpr std::uint32_t kSetAside = 1;
  std::uint32_t receives_;
  std::uint32_t left_;
  std::uint32_t owed_ = 0;
};

}  // namespace commtune::verbs
