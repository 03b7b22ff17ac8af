"""Two workers fetch items from an object store; the GPU could take twice as many."""

import sys
import time

from torch.utils.data import DataLoader, Dataset

NUM_WORKERS = 5 if "fixed" in sys.argv else 2


class Photos(Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, index):
        time.sleep(0.003)  # an object store answers
        return index


if __name__ == "__main__":
    for _batch in DataLoader(Photos(), batch_size=16, num_workers=NUM_WORKERS):
        time.sleep(0.010)  # the GPU trains
