"""The MNIST race: a small convolutional network whose every layer is an Op, and who trains it."""
