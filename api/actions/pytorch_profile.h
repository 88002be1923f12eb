#pragma once
// A profile of a real model, measured by the Python that trains it.

#include "api/actions/context.h"
#include "api/actions/profile.h"
#include "perfmodel/profile.h"

namespace commtune::api {

/// Runs `python3 -m commtune.torch.profile` of the package in api/python on request.pytorch.
///
/// throws  Error{kUnavailable} where python3, PyTorch or the package is missing; Error{kBadInput} with the
/// last
///         line that Python said where it could not make or time the model; Error{kInterrupted} after Ctrl-C
Profile profile_of_program(Context& context, const ProfileRequest& request);

}  // namespace commtune::api
