"""How is it worked out where one machine is too small? The brain's sums over graphs and logs as jobs of Spark."""
