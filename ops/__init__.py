"""What can be asked: OPS, an explicit tuple; by_id() and by_name() look it up."""
