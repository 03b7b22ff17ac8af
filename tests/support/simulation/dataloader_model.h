// The model of a PyTorch DataLoader, as its adapter writes it (python/headrace/loaders/torch_dataloader).
#pragma once

#include "headrace/profile/profile.h"
#include "support/simulation/loader.h"

namespace headrace::simulation {

/// Gives `profile` the model, with its operators in their stages.
void describe(const DataLoader& loader, profile::Profile& profile);

/// The model's parameter of that name, which is there.
profile::LoaderParameter& parameter(profile::Profile& profile, const std::string& name);

}  // namespace headrace::simulation
