"""Workers decode large JPEG files, until no core is left."""

import io
import sys
import time

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader, Dataset

DRAFT = "fixed" in sys.argv

pixels = np.linspace(0, 255, 1200 * 1600 * 3).reshape(1200, 1600, 3)
noise = np.random.default_rng(0).integers(0, 32, pixels.shape)
PHOTO = io.BytesIO()
Image.fromarray(((pixels + noise) % 256).astype("uint8")).save(PHOTO, "jpeg")


class Photos(Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(PHOTO.getvalue()))
        if DRAFT:
            image.draft("RGB", (256, 256))  # decode no more pixels than are needed
        return np.array(image.resize((224, 224)))


if __name__ == "__main__":
    for _batch in DataLoader(Photos(), batch_size=8, num_workers=2):
        time.sleep(0.020)  # the GPU trains
