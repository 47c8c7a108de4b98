"""What searchers want: query and click logs, the workload, the visibility of ranks."""
