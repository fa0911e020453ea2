"""What every other folder uses: arrays, errors, checks, threads, kernels, files, text."""
