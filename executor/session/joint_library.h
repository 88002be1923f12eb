#pragma once
// How the ranks of a run get the library of collectives that their plan sums by.

#include <memory>
#include <string>

#include "executor/collectives/library.h"
#include "executor/transport/communicator.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Kept from plan to plan as long as they name the same one for as many workers.
class JointLibrary {
 public:
  /// All ranks call it, while none of a plan's messages is under way. The communicator outlives this.
  ///
  /// throws  Error{kUnavailable} where a rank cannot use it: on every rank the same text, which names the
  /// first
  ///         such rank and says why
  void join(Communicator& communicator, const Plan& plan, Deadline until);

  /// nullptr where the plan needs none, or this rank has no part in it.
  CollectiveLibrary* get() const { return library_.get(); }
  /// Lets go of it, whatever is under way.
  void reset() { library_.reset(); }

 private:
  std::unique_ptr<CollectiveLibrary> library_;
  std::string name_;  // as its plan has it
  int workers_ = 0;   // 0: no plan has needed one yet
};

}  // namespace commtune
