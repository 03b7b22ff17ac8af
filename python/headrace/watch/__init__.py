"""What is wrong with the data and the training: batches, random numbers, tensors. Off unless asked."""
