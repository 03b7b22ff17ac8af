"""A DataLoader as it is made without arguments: it loads in the training loop itself."""

import sys
import time

from torch.utils.data import DataLoader, Dataset

NUM_WORKERS = 2 if "fixed" in sys.argv else 0


class Thumbnails(Dataset):
    def __len__(self):
        return 4800

    def __getitem__(self, index):
        time.sleep(0.001)  # read from a file server
        return index


if __name__ == "__main__":
    for _batch in DataLoader(Thumbnails(), batch_size=16, num_workers=NUM_WORKERS):
        time.sleep(0.020)  # the GPU trains
