"""Laws and strategies for those who add a loss or a set; needs Hypothesis."""
