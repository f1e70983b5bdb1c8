"""The folder that is generated into: what is there, what would change, and changing it all at once or not at all."""
