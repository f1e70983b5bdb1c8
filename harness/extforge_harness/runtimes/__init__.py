"""Where an extension works: runtimes, the capabilities they expose, and what a new runtime must prove first."""
