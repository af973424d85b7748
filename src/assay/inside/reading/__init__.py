"""What other tools recorded: Chrome traces, Nsight Compute's pages and reports, Nsight Systems."""
