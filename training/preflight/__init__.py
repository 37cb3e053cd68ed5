"""What ranks find of their machines before a training: exchange, disks, clocks, versions, GPUs."""
