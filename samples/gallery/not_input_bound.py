"""The GPU is the limit: batches are ready before the loop asks."""

import time

from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, index):
        time.sleep(0.001)
        return index


if __name__ == "__main__":
    for _batch in DataLoader(Photos(), batch_size=8, num_workers=2):
        time.sleep(0.025)  # the GPU trains
