"""The only part of extforge that knows openJiuwen; nothing here imports it before it is needed."""
