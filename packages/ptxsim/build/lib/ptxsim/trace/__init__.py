"""What a run did, as events; the schedule and the files made from them."""
