"""What a classifier's probabilities are worth: figures of detection and of calibration, with how sure they are. Pure."""
