"""One item of 251 takes 0.3 s: with ordered delivery every batch behind it waits."""

import sys
import time

from torch.utils.data import DataLoader, Dataset

IN_ORDER = "fixed" not in sys.argv


class Scans(Dataset):
    def __len__(self):
        return 6400

    def __getitem__(self, index):
        time.sleep(0.300 if index % 251 == 137 else 0.001)  # a scan of many pages
        return index


if __name__ == "__main__":
    for _batch in DataLoader(Scans(), batch_size=16, num_workers=4, in_order=IN_ORDER):
        time.sleep(0.015)  # the GPU trains
